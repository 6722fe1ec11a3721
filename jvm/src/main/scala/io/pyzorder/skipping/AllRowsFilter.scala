package io.pyzorder.skipping

/**
 * A filter over the index table, the second judge. It answers for each file: is the predicate TRUE
 * for all of its rows? "Yes" is a proof, and everything unknown is a "no".
 *
 * A row for which a predicate is neither FALSE nor NULL makes it TRUE. The first judge proves that
 * no row makes `NOT p` TRUE, which is that none makes p FALSE; that none makes it NULL is told by
 * the null counts. So each kind rests on the proofs beside the kinds of IndexFilter. Tempting and
 * wrong: `NOT IndexFilter(p)`, which says that no row is TRUE, or leaving the nulls out, which
 * counts a row of `a < 5` whose a is null.
 */
sealed trait AllRowsFilter {

  /** The filter over a snapshot's columns; what needs one unknown to `facts` proves nothing. */
  def bind(facts: FilterColumn => Option[ColumnFacts]): FileProof
}

/** A question to one file: is the predicate proved TRUE for all of its rows? */
abstract class FileProof {
  def allMatch(file: Int): Boolean
}

object AllRowsFilter {

  private val Yes: FileProof = new FileProof {
    override def allMatch(file: Int): Boolean = true
  }

  private val No: FileProof = new FileProof {
    override def allMatch(file: Int): Boolean = false
  }

  /** TRUE whatever the row (the literal, or no predicate at all). */
  case object Proved extends AllRowsFilter {
    override def bind(facts: FilterColumn => Option[ColumnFacts]): FileProof = Yes
    override def toString: String = "true"
  }

  /** No proof is possible for any file. */
  case object Unproved extends AllRowsFilter {
    override def bind(facts: FilterColumn => Option[ColumnFacts]): FileProof = No
    override def toString: String = "false"
  }

  /** `a AND b` is TRUE for a row only where both are: both must be proved. */
  final case class Both(left: AllRowsFilter, right: AllRowsFilter) extends AllRowsFilter {
    override def bind(facts: FilterColumn => Option[ColumnFacts]): FileProof = {
      val (l, r) = (left.bind(facts), right.bind(facts))
      new FileProof {
        override def allMatch(file: Int): Boolean = l.allMatch(file) && r.allMatch(file)
      }
    }
    override def toString: String = s"($left AND $right)"
  }

  /** `a OR b` is TRUE for all rows if one of the two is: the other may be FALSE or NULL then. */
  final case class Either(left: AllRowsFilter, right: AllRowsFilter) extends AllRowsFilter {
    override def bind(facts: FilterColumn => Option[ColumnFacts]): FileProof = {
      val (l, r) = (left.bind(facts), right.bind(facts))
      new FileProof {
        override def allMatch(file: Int): Boolean = l.allMatch(file) || r.allMatch(file)
      }
    }
    override def toString: String = s"($left OR $right)"
  }

  /**
   * A leaf p that is NULL for a row only where one of `operands` is: no operand is ever null, and
   * by the first judge no row makes `NOT p` TRUE. A null count that is unknown may be of nulls.
   *
   * @param operands none for a leaf that is never NULL
   * @param negated  the first judge's filter of `NOT p`
   */
  final case class NeverFalse(operands: Seq[FilterColumn], negated: IndexFilter)
      extends AllRowsFilter {
    override def bind(facts: FilterColumn => Option[ColumnFacts]): FileProof = {
      val known = operands.flatMap(facts(_))
      val mayBeFalse = negated.bind(facts)
      if (known.length < operands.length) No
      else new FileProof {
        override def allMatch(file: Int): Boolean =
          !known.exists(_.mayBeNull(file)) && !mayBeFalse.mayMatch(file)
      }
    }
    override def toString: String = {
      val notNull = operands.map(numNulls(_) + " = 0")
      val notFalse = negated match {
        case IndexFilter.Never => Nil
        case IndexFilter.HasNull(column) => Seq(numNulls(column) + " = 0")
        case other if other.toString.startsWith("(") => Seq(s"NOT $other")
        case other => Seq(s"NOT ($other)")
      }
      (notNull ++ notFalse) match {
        case Seq(one) => one
        case parts => parts.mkString("(", " AND ", ")")
      }
    }
    private def numNulls(column: FilterColumn): String =
      column.plain.sql("_num_nulls")
  }

  def and(left: AllRowsFilter, right: AllRowsFilter): AllRowsFilter = (left, right) match {
    case (Unproved, _) | (_, Unproved) => Unproved
    case (Proved, other) => other
    case (other, Proved) => other
    case (l, r) => Both(l, r)
  }

  def or(left: AllRowsFilter, right: AllRowsFilter): AllRowsFilter = (left, right) match {
    case (Proved, _) | (_, Proved) => Proved
    case (Unproved, other) => other
    case (other, Unproved) => other
    case (l, r) => Either(l, r)
  }
}
