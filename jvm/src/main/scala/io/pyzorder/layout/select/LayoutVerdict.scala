package io.pyzorder.layout.select

/**
 * A group of files, each of which a lookup is equally likely to open.
 *
 * @param files  number of files
 * @param bytes  their total size
 * @param widths for each column, the share of the values that lie within one file's bounds; this is
 *               the probability that a lookup of one value opens the file
 */
final case class Piece(files: Double, bytes: Double, widths: Seq[Double]) {
  private val opened: Double = if (widths.isEmpty) 1.0 else widths.sum / widths.length

  def openedFiles: Double = files * opened
  def openedBytes: Double = bytes * opened
}

/**
 * The cost of a lookup of one value: the files that it opens, averaged over the values and the
 * clustering columns.
 *
 * @param files number of files
 * @param bytes their total size
 * @param share their share of the table's bytes, 0 to 1
 */
final case class Lookup(files: Double, bytes: Double, share: Double) {

  /** The cost in bytes, including the cost of opening the files. */
  def cost: Double = bytes + files * LayoutVerdict.OpenCost
}

/**
 * Determines whether an OPTIMIZE is worth running. DRY RUN, DESCRIBE SKIPPING INDEX, pyzorder's
 * report, the advisor and the command-line tool all show this verdict, and OPTIMIZE refuses to run
 * if the verdict is *harmful*.
 *
 * The verdict depends on the cost of a lookup, which is the total size of the files that it opens,
 * plus `OpenCost` for each of them.
 *  - An OPTIMIZE is *harmful* if it replaces files that are already clustered and makes lookups
 *    cost more than `Harm` times what they cost now. The increase must also be at least `Noticed`,
 *    because one more tiny file per lookup does not matter. Merging 10,000 files of 10 KB is
 *    therefore harmful only if they were clustered and if lookups open few of them. Merging 16
 *    clustered 1 MB files into one is harmful if a lookup opens four of them.
 *  - An OPTIMIZE *pays off* if the expected lookups save at least as many bytes as the OPTIMIZE
 *    rewrites. This applies both to a rewrite of the whole table and to a rewrite of a few new
 *    files. If queries are recorded, as many lookups are expected as there were recorded ones in
 *    the last days. Otherwise, `UnrecordedLookups` are expected.
 *  - An OPTIMIZE also pays off if it reduces the number of files, and either the table has no
 *    clustering columns or the replaced files take longer to open than to read.
 *  - Otherwise, an OPTIMIZE is *useless*.
 *
 * @param kind     `nothing`, `pays`, `useless` or `harms`
 * @param sentence the verdict as a sentence for the user
 */
final case class LayoutVerdict(kind: String, sentence: String) {
  def isHarm: Boolean = kind == "harms"
}

object LayoutVerdict {

  /**
   * Opening a file costs as much as reading this many bytes. On an object store, this is the cost
   * of a request. On a disk, it is the cost of reading a footer and starting a task.
   */
  val OpenCost: Double = 256.0 * 1024

  /** Files smaller than this do not make lookups faster. */
  val LeastUseful: Long = LayoutSettings.Smallest / 16

  private val Harm = 1.25
  private val Noticed = 2 * OpenCost

  /** The number of lookups to expect if no queries are recorded. */
  val UnrecordedLookups = 10L

  /**
   * The work that an OPTIMIZE would do.
   *
   * @param replaced   number of files to replace
   * @param rewritten  total size of the files to replace in bytes
   * @param kept       number of files that are not replaced
   * @param clustered  number of files that are already clustered as requested
   * @param unpaid     number of partitions whose rewrite would not pay off, see RewritePlan
   * @param written    number of files to write
   * @param partitions number of folders that contain files to replace
   * @param inPartitions whether WHERE selects partitions
   * @param undoes     whether some of the files to replace were clustered when they were written
   * @param columns    names of the clustering columns; Nil if small files are only merged
   * @param targetSize the target size of a new file in bytes
   * @param lookups    the number of recent queries that restrict a clustering column and read the
   *                   partitions of the files to replace; None if no queries are recorded
   */
  final case class Work(
      replaced: Int,
      rewritten: Long,
      kept: Int,
      clustered: Int,
      unpaid: Int,
      written: Int,
      partitions: Int,
      inPartitions: Boolean,
      undoes: Boolean,
      columns: Seq[String],
      targetSize: Long,
      lookups: Option[Long]) {

    /** Whether no partition has more than one file after the OPTIMIZE. */
    def isUnskippable: Boolean = replaced > 0 && kept == 0 && written <= partitions
  }

  /**
   * @param before the table's current files
   * @param after  the table's files after the OPTIMIZE
   */
  def of(work: Work, before: Seq[Piece], after: Seq[Piece]): LayoutVerdict = {
    val (now, next) = (lookup(before), lookup(after))
    val lookups = work.lookups.getOrElse(UnrecordedLookups)
    def saves = work.columns.nonEmpty &&
      this.saves((now.bytes - next.bytes) * lookups, work.rewritten)
    def merges = this.merges(work.replaced, work.rewritten, work.written, work.columns.nonEmpty)
    val shares = s"${percent(next.share)} instead of ${percent(now.share)}"
    if (work.replaced == 0) LayoutVerdict("nothing", nothingToDo(work))
    else if (work.undoes && next.cost > Harm * now.cost && next.cost - now.cost >= Noticed) {
      val effect =
        if (next.share > now.share) s"read $shares of the table"
        else s"open about ${files(whole(next.files))} instead of ${whole(now.files)}"
      LayoutVerdict("harms",
        s"Harmful: a lookup would $effect, because " +
          s"${files(work.replaced)} would become ${files(work.written)} of about " +
          s"${size(work.targetSize)}.")
    } else if (saves) {
      LayoutVerdict("pays", s"Pays off: a lookup would read $shares of the table${among(work)}.")
    } else if (merges) {
      val merged = s"${files(work.replaced)} would become ${files(work.written)}"
      LayoutVerdict("pays",
        if (work.columns.nonEmpty && work.isUnskippable) {
          s"Pays off, but only because it merges files: $merged. " + tooSmall(work).capitalize
        } else s"Pays off: $merged, so queries would open fewer files.")
    } else if (work.isUnskippable) LayoutVerdict("useless", s"Does not pay off: ${tooSmall(work)}")
    else {
      LayoutVerdict("useless",
        s"Does not pay off: a lookup would read $shares of the table${among(work)}.")
    }
  }

  /** Whether lookups that save this many bytes in total save at least what a rewrite replaces. */
  private[select] def saves(saved: Double, rewritten: Long): Boolean =
    saved > 0 && saved >= rewritten

  /** Whether a rewrite pays off because it reduces the number of files. */
  private[select] def merges(
      replaced: Int,
      rewritten: Long,
      written: Int,
      clusters: Boolean): Boolean =
    written < replaced && (!clusters || rewritten < OpenCost * replaced)

  private def nothingToDo(work: Work): String = {
    val why =
      if (work.unpaid > 0) "in no partition would the queries save as much as a rewrite replaces"
      else if (work.clustered > 0) {
        s"the files are already clustered by ${work.columns.mkString(", ")}"
      } else if (work.kept > 0 && work.columns.nonEmpty) "the files have no rows"
      else if (work.kept > 0) "no files are small enough to be merged"
      else if (work.inPartitions) "WHERE selects no files"
      else "the table has no files"
    s"Nothing to do: $why."
  }

  /**
   * The end of a sentence that says how many lookups were recorded. Empty if queries are not
   * recorded.
   */
  private def among(work: Work): String = work.lookups.fold("") {
    case 0 => ", but none of the recent recorded queries restricts a clustering column"
    case 1 => ", and 1 lookup was recorded lately"
    case count => f", and $count%,d lookups were recorded lately"
  }

  /**
   * A sentence for the user if an OPTIMIZE had nothing to do, or if it clustered rows but made no
   * file skippable. In the second case, it suggests FULL because the files are clustered now.
   */
  def remark(work: Work): Option[String] =
    if (work.replaced == 0) Some(nothingToDo(work))
    else if (work.columns.isEmpty || !work.isUnskippable) None
    else Some(tooSmall(work, full = true).capitalize)

  /**
   * Explains that clustering has no effect because each partition becomes a single file. Suggests a
   * smaller target size if that would help.
   *
   * @param full whether the statement with the smaller target size needs FULL
   */
  private def tooSmall(work: Work, full: Boolean = false): String = {
    val what = if (work.partitions == 1) "the data is" else "each partition is"
    val smaller = work.rewritten / work.partitions / 16
    val hint =
      if (smaller < LeastUseful) "Reading a table this small is faster than skipping files."
      else {
        val target = rounded(smaller)
        s"Try SET spark.sql.zorder.optimize.targetFileSize=$target" +
          (if (full) " and OPTIMIZE … FULL" else "") +
          s" (on the command line, --target-size $target${if (full) " --full" else ""})."
      }
    s"$what too small to be divided into files of about ${size(work.targetSize)}, so clustering " +
      s"does not let queries skip files. $hint"
  }

  /** A target size that is a round number of bytes, no greater than `bytes`. */
  private def rounded(bytes: Long): String = {
    val kilobytes = java.lang.Long.highestOneBit(math.max(1L, bytes >> 10))
    if (kilobytes < 1024) s"${kilobytes}k" else s"${kilobytes / 1024}m"
  }

  /** The cost of a lookup in these files. */
  private[select] def lookup(pieces: Seq[Piece]): Lookup = {
    val all = pieces.map(_.bytes).sum
    val opened = pieces.map(_.openedBytes).sum
    Lookup(pieces.map(_.openedFiles).sum, opened, if (all > 0) opened / all else 0.0)
  }

  private def whole(files: Double): Int = math.max(1, math.round(files).toInt)

  private def files(count: Int): String = if (count == 1) "1 file" else f"$count%,d files"

  /** A share (0 to 1) as text. */
  private[pyzorder] def percent(share: Double): String =
    if (share > 0 && share < 0.01) "less than 1%" else s"${math.round(share * 100)}%"

  private def size(bytes: Long): String =
    if (bytes < (1L << 20)) s"${math.max(1L, bytes >> 10)} KiB"
    else s"${math.round(bytes / math.pow(2, 20))} MiB"
}
