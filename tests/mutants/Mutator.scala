package io.pyzorder.mutants

import java.nio.file.{Files, Path, Paths}

import scala.collection.mutable
import scala.tools.nsc.{Global, Settings}
import scala.tools.nsc.reporters.StoreReporter

/**
 * Compiles sources together with all their mutants. At run time, `Active` determines which mutant
 * is executed at each place. Mutants that do not compile are left out and marked in the list.
 *
 * Arguments: the folder for the classes, the file for the list of mutants, and the Scala files. The
 * columns of the list are tab-separated: number, file, line, column, before, after, and whether the
 * mutant compiles.
 */
object Mutator {

  /** A mutation of one piece of source code. For a `case`, `after` is "never". */
  private final case class Mutant(number: Int, before: String, after: String)

  /** A piece of source code: an expression or, if it is empty, the end of a pattern. */
  private final case class Site(start: Int, end: Int, mutants: Seq[Mutant])

  private val Swapped: Map[String, Seq[String]] = Map(
    "<" -> Seq("<=", ">="), "<=" -> Seq("<", ">"), ">" -> Seq(">=", "<="), ">=" -> Seq(">", "<"),
    "==" -> Seq("!="), "!=" -> Seq("=="), "eq" -> Seq("ne"), "ne" -> Seq("eq"),
    "-" -> Seq("+"), "&" -> Seq("|"), "|" -> Seq("&"), "<<" -> Seq(">>"), ">>" -> Seq("<<"),
    ">>>" -> Seq("<<"))

  private val Renamed: Map[String, String] = {
    val pairs = Seq(
      "min" -> "max", "head" -> "last", "headOption" -> "lastOption", "exists" -> "forall",
      "and" -> "or", "below" -> "above", "oneOf" -> "other", "prefix" -> "notPrefix",
      "HasNull" -> "HasValue", "Below" -> "Above", "Never" -> "Always", "lt" -> "lteq",
      "isEmpty" -> "nonEmpty", "filter" -> "filterNot", "True" -> "False", "Null" -> "NotNull",
      "init" -> "tail", "low" -> "high", "least" -> "greatest", "foldRight" -> "foldLeft",
      "left" -> "right", "yes" -> "no", "whenTrue" -> "whenFalse")
    (pairs ++ pairs.map(_.swap)).toMap ++ Map(
      "NotTrue" -> "True", "HasNaN" -> "HasValue", "lteq" -> "lt", "gt" -> "gteq",
      "nanSeen" -> "mayBeNull", "mayHaveValue" -> "mayBeNull", "mayBeNull" -> "mayHaveValue")
  }

  def main(arguments: Array[String]): Unit = {
    val Array(classes, list) = arguments.take(2)
    val sources = arguments.drop(2).map(Paths.get(_))
    val settings = new Settings(message => throw new IllegalArgumentException(message))
    settings.processArguments(
      List("-usejavacp", "-Yrangepos", "-nowarn", "-d", classes), processAll = true)
    val reporter = new StoreReporter(settings)
    val global = new Global(settings, reporter)
    val sites = new Sites(global).of(sources.toSeq)
    val broken = mutable.Set.empty[Int]
    var failed = true
    while (failed) {
      val written = sources.map(source => new Written(source, sites(source), broken))
      reporter.reset()
      val run = new global.Run
      run.compileSources(written.toList.map(w =>
        new scala.reflect.internal.util.BatchSourceFile(w.name, w.text)) :+ active)
      val errors = reporter.infos.filter(_.severity == reporter.ERROR)
      failed = errors.nonEmpty
      val culprits = errors.flatMap(e =>
        written.find(_.name == e.pos.source.file.path).flatMap(_.at(e.pos.point)))
      if (failed && culprits.subsetOf(broken)) sys.error(errors.mkString("\n"))
      broken ++= culprits
    }
    val lines = for {
      source <- sources
      text = Files.readString(source)
      site <- sites(source)
      mutant <- site.mutants
    } yield {
      val before = text.take(site.start)
      Seq(mutant.number, source.getFileName, before.count(_ == '\n') + 1,
        site.start - before.lastIndexOf('\n'), shown(mutant.before), shown(mutant.after),
        !broken(mutant.number)).mkString("\t")
    }
    Files.write(Paths.get(list), lines.mkString("", "\n", "\n").getBytes("utf-8"))
  }

  private def shown(text: String): String = text.replaceAll("\\s+", " ")

  /** The code of `Active`. It selects the active mutant and records which mutants are reached. */
  private val active = new scala.reflect.internal.util.BatchSourceFile("Active.scala",
    """package io.pyzorder.mutants
      |
      |object Active {
      |  @volatile private var mutant = -1
      |  @volatile private var seen = new Array[Boolean](65536)
      |  @volatile private var asked = 0
      |
      |  def is(number: Int): Boolean = {
      |    seen(number) = true
      |    if (number != mutant) false
      |    else {
      |      asked += 1
      |      if (asked > 3000000) throw new InternalError("the mutant does not end")
      |      true
      |    }
      |  }
      |
      |  def set(number: Int): Unit = { asked = 0; mutant = number }
      |
      |  /** The mutants that were reached since the last call. */
      |  def reached(): String = {
      |    val found = seen.indices.filter(seen(_))
      |    seen = new Array[Boolean](65536)
      |    found.mkString(" ")
      |  }
      |}
      |""".stripMargin)

  /** A source file with its mutants inserted. */
  private final class Written(source: Path, sites: Seq[Site], broken: collection.Set[Int]) {

    val name: String = source.toString
    private val original = Files.readString(source)
    private val out = new mutable.StringBuilder
    private val ranges = mutable.ArrayBuffer.empty[(Int, Int, Int)]

    write(0, original.length, sites.sortBy(site => (site.start, -site.end)).toList)

    val text: String = out.toString

    /** The mutant at this position in the written file. */
    def at(place: Int): Option[Int] =
      ranges.filter { case (start, end, _) => start <= place && place <= end }
        .minByOption { case (start, end, _) => end - start }.map(_._3)

    private def write(start: Int, end: Int, within: List[Site]): Unit = within match {
      case Nil => out ++= original.substring(start, end)
      case site :: rest =>
        out ++= original.substring(start, site.start)
        val (inner, after) = rest.span(_.end <= site.end)
        write(site, inner)
        write(site.end, end, after)
    }

    private def write(site: Site, inner: List[Site]): Unit = {
      val alive = site.mutants.filterNot(mutant => broken(mutant.number))
      val first = out.length
      if (site.start == site.end) {
        if (alive.nonEmpty) out ++= s" if !io.pyzorder.mutants.Active.is(${alive.head.number})"
      } else {
        if (alive.nonEmpty) out += '('
        alive.foreach { mutant =>
          out ++= s"if (io.pyzorder.mutants.Active.is(${mutant.number})) ("
          val start = out.length
          out ++= mutant.after
          ranges += ((start, out.length, mutant.number))
          out ++= ") else "
        }
        if (alive.nonEmpty) out += '('
        write(site.start, site.end, inner)
        if (alive.nonEmpty) out ++= "))"
      }
      alive.foreach(mutant => ranges += ((first, out.length, mutant.number)))
    }
  }

  /** Finds places that can be mutated in the compiler's syntax trees. */
  private final class Sites(val global: Global) {
    import global._

    private var number = 0

    def of(sources: Seq[Path]): Map[Path, Seq[Site]] = {
      val run = new Run
      sources.map { source =>
        val text = Files.readString(source)
        val file = new scala.reflect.internal.util.BatchSourceFile(source.toString, text)
        val finder = new Finder(text)
        finder.traverse(newUnitParser(new CompilationUnit(file)).parse())
        source -> finder.found.toSeq
      }.toMap
    }

    private final class Finder(text: String) extends Traverser {

      /** The sites by position. An expression has a single site even if several rules find it. */
      private val places = mutable.LinkedHashMap.empty[(Int, Int), Seq[String]]

      def found: Iterable[Site] = places.map { case ((start, end), after) =>
        val before = text.substring(start, end)
        Site(start, end, after.distinct.filter(_ != before).map { form =>
          number += 1
          Mutant(number, if (before.isEmpty) lineOf(start) else before, form)
        })
      }

      private def lineOf(place: Int): String = {
        val from = text.lastIndexOf("case ", place)
        text.substring(from, place)
      }

      private def of(tree: Tree): String = text.substring(tree.pos.start, tree.pos.end)

      private def add(tree: Tree, after: String*): Unit =
        if (tree.pos.isRange && tree.pos.start < tree.pos.end && !isBare(tree)) {
          val place = (tree.pos.start, tree.pos.end)
          places(place) = places.getOrElse(place, Nil) ++ after
        }

      /** Whether the tree is a name without braces in an interpolated string. */
      private def isBare(tree: Tree): Boolean = text.startsWith("$", tree.pos.start - 1)

      /** Adds a mutant in which one of the names in an expression is replaced. */
      private def renamed(tree: Tree, at: Int, name: String, other: String): Unit =
        if (at >= tree.pos.start && text.startsWith(name, at)) {
          val from = at - tree.pos.start
          add(tree, of(tree).patch(from, other, name.length))
        }

      private def isWild(pattern: Tree): Boolean = pattern match {
        case Ident(name) => name == nme.WILDCARD || !name.decoded.head.isUpper
        case Bind(_, Ident(nme.WILDCARD)) => true
        case Apply(function: RefTree, arguments) => // a tuple of names
          function.name.decoded.startsWith("Tuple") && arguments.forall(isWild)
        case _ => false
      }

      /** Whether the pattern belongs to a case, rather than to a `val` or a `for`. */
      private def isCase(pattern: Tree): Boolean =
        pattern.pos.isRange && text.substring(0, pattern.pos.start).trim.endsWith("case")

      private def condition(tree: Tree): Unit = add(tree, "true", "false")

      override def traverse(tree: Tree): Unit = tree match {
        case _: Import | _: TypeTree => ()
        case ModuleDef(_, _, Template(_, _, body)) => body.foreach {
            case ValDef(modifiers, _, _, _) if !modifiers.isLazy => () // evaluated only once
            case member => traverse(member)
          }
        case CaseDef(pattern, guard, body) =>
          if (guard.nonEmpty) { condition(guard); traverse(guard) }
          else if (isCase(pattern) && !isWild(pattern))
            places((pattern.pos.end, pattern.pos.end)) = Seq("never")
          traverse(body)
        case LabelDef(_, _, If(_, body, _)) => traverse(body)
        case If(test, yes, no) =>
          condition(test)
          super.traverse(tree)
        case Literal(Constant(value: Boolean)) => add(tree, (!value).toString)
        case Select(operand, name) if name == nme.UNARY_! =>
          add(tree, of(operand))
          traverse(operand)
        case Apply(operator @ Select(left, name), List(right)) if tree.pos.isRange =>
          val op = name.decoded
          val isNumber = right.isInstanceOf[Literal]
          if (op == "&&" || op == "||") {
            val other = if (op == "&&") "||" else "&&"
            add(tree, s"(${of(left)}) $other (${of(right)})", of(left), of(right))
          } else if (op == "+" && isNumber && right.toString.head.isDigit)
            add(tree, s"(${of(left)}) - (${of(right)})", of(left))
          else Swapped.get(op).foreach(others =>
              add(tree, others.map(other => s"(${of(left)}) $other (${of(right)})"): _*))
          Renamed.get(op).foreach(renamed(tree, operator.pos.point, op, _))
          traverse(left)
          traverse(right)
        case Apply(function @ Ident(name), arguments) =>
          Renamed.get(name.decoded).foreach(renamed(tree, function.pos.start, name.decoded, _))
          arguments.foreach(traverse)
        case Apply(function @ Select(qualifier, name), arguments) =>
          Renamed.get(name.decoded).foreach(
            renamed(tree, function.pos.point, name.decoded, _))
          traverse(qualifier)
          arguments.foreach(traverse)
        case Ident(name) => Renamed.get(name.decoded).foreach(add(tree, _))
        case Select(qualifier, name) =>
          Renamed.get(name.decoded).foreach(renamed(tree, tree.pos.point, name.decoded, _))
          traverse(qualifier)
        case NamedArg(_, value) => traverse(value)
        case Assign(_, value) => traverse(value)
        case ValDef(_, _, _, value) => traverse(value)
        case _ => super.traverse(tree)
      }
    }
  }
}
