package io.pyzorder.layout.select

import org.scalatest.funsuite.AnyFunSuite

import io.pyzorder.layout.select.LayoutVerdict.Work

class LayoutVerdictSuite extends AnyFunSuite {

  private val Mega = 1 << 20

  /** A rewrite of 16 clustered files of 1 MiB. */
  private val work = Work(
    replaced = 16, rewritten = 16L * Mega, kept = 0, clustered = 0, unpaid = 0, written = 16,
    partitions = 1,
    inPartitions = false, undoes = false, columns = Seq("a", "b"), targetSize = Mega.toLong,
    lookups = None)

  private val idle = work.copy(replaced = 0, rewritten = 0, written = 0, partitions = 0)

  private val all = pieces(16, 1.0)
  private val quarter = pieces(16, 0.25)

  /** Files of 1 MiB that a lookup opens with the probability `width`. */
  private def pieces(files: Int, width: Double, bytes: Int = Mega): Seq[Piece] =
    Seq(Piece(files, files.toDouble * bytes, Seq(width)))

  /** Each case: its name, the work, the files before and after it, the verdict and its sentence. */
  private val cases = Seq[(String, Work, Seq[Piece], Seq[Piece], String, String)](
    ("a table without files", idle, Nil, Nil,
      "nothing", "Nothing to do: the table has no files."),
    ("a condition that selects nothing", idle.copy(inPartitions = true), Nil, Nil,
      "nothing", "Nothing to do: WHERE selects no files."),
    ("clustered files", idle.copy(kept = 16, clustered = 16), quarter, quarter,
      "nothing", "Nothing to do: the files are already clustered by a, b."),
    ("partitions that do not pay off", idle.copy(kept = 16, unpaid = 2), quarter, quarter,
      "nothing",
      "Nothing to do: in no partition would the queries save as much as a rewrite " +
        "replaces."),
    ("files without rows", idle.copy(kept = 1), pieces(1, 1.0, 0), pieces(1, 1.0, 0),
      "nothing", "Nothing to do: the files have no rows."),
    ("large files that are not clustered", idle.copy(kept = 16, columns = Nil), all, all,
      "nothing", "Nothing to do: no files are small enough to be merged."),
    ("clustering", work, all, quarter,
      "pays", "Pays off: a lookup would read 25% instead of 100% of the table."),
    ("clustering that few lookups use", work.copy(lookups = Some(1)), all, quarter,
      "useless",
      "Does not pay off: a lookup would read 25% instead of 100% of the table, " +
        "and 1 lookup was recorded lately."),
    ("merging", work.copy(written = 1, columns = Nil), all, pieces(1, 1.0, 16 * Mega),
      "pays", "Pays off: 16 files would become 1 file, so queries would open fewer files."),
    ("clustered files that become one", work.copy(written = 1, undoes = true),
      quarter, pieces(1, 1.0, 16 * Mega),
      "harms",
      "Harmful: a lookup would read 100% instead of 25% of the table, because " +
        "16 files would become 1 file of about 1 MiB."),
    ("clustered files that become many",
      work.copy(replaced = 1, written = 64, undoes = true, targetSize = Mega / 4L),
      pieces(1, 1.0, 16 * Mega), pieces(256, 0.75, Mega / 16),
      "harms",
      "Harmful: a lookup would open about 192 files instead of 1, because " +
        "1 file would become 64 files of about 256 KiB."))

  for ((name, work, before, after, kind, sentence) <- cases) test(name) {
    val verdict = LayoutVerdict.of(work, before, after)
    assert((verdict.kind, verdict.sentence) == ((kind, sentence)))
  }
}
