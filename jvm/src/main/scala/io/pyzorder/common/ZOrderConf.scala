package io.pyzorder.common

import java.util.Locale
import java.util.concurrent.TimeUnit

import org.apache.spark.network.util.{ByteUnit, JavaUtils}
import org.apache.spark.sql.pyzorder.{Setting, TableSetting}

/** Every setting of pyzorder, with what `SET -v` says of it. Loading this object registers them. */
object ZOrderConf {

  val skippingEnabled: TableSetting[Boolean] = new TableSetting(
    "spark.sql.zorder.skipping.enabled",
    "true",
    "When false, no data file is skipped and no answer comes from the index: every query reads " +
      "all the files that plain Spark would read.",
    boolean)

  val journalOverlay: Setting[Boolean] = new Setting(
    "spark.sql.zorder.journal.overlay",
    "true",
    "Readers look into a table's journal, so that an OPTIMIZE that is running, or was killed, " +
      "shows every row exactly once. When false, they list the folder as plain Spark does.",
    boolean)

  /** Bytes. */
  val targetFileSize: TableSetting[Long] = new TableSetting(
    "spark.sql.zorder.optimize.targetFileSize",
    "256m",
    "The size of the files that OPTIMIZE writes, in bytes or as a size string such as 256m. Not " +
      "set: what the table's last OPTIMIZE was given, else 256m, but with clustering columns a " +
      "32nd of a table of less than 8 GiB, and never less than 1m.",
    bytes)

  /** Bytes. */
  val batchSize: TableSetting[Long] = new TableSetting(
    "spark.sql.zorder.optimize.batchSize",
    "200g",
    "OPTIMIZE rewrites and publishes about so many bytes at a time, whole partitions: if it is " +
      "stopped, the batches before stay, and the next OPTIMIZE goes on with the rest.",
    bytes)

  /** `boundaries` or `direct`. */
  val method: TableSetting[String] = new TableSetting(
    "spark.sql.zorder.optimize.method",
    "boundaries",
    "How OPTIMIZE turns a value into bits: 'boundaries' takes its rank among sampled values, " +
      "'direct' the value's own ordered bytes, and lays a partition with new files out as a " +
      "whole. Not set: as the table's last OPTIMIZE did.",
    oneOf("boundaries", "direct"))

  /** `zorder`, `hilbert` or `linear`. */
  val curve: TableSetting[String] = new TableSetting(
    "spark.sql.zorder.optimize.curve",
    "zorder",
    "The order that OPTIMIZE lays rows in: 'zorder', 'hilbert', or 'linear' (the clustering " +
      "columns one after the other, as ORDER BY). Not set: the curve of the table's last OPTIMIZE.",
    oneOf("zorder", "hilbert", "linear"))

  /** Rows. */
  val sampleSize: Setting[Int] = new Setting(
    "spark.sql.zorder.optimize.sampleSize",
    "100000",
    "About how many rows OPTIMIZE samples to find the boundaries of the clustering columns.",
    positiveInt)

  val rewriteFactor: TableSetting[Double] = new TableSetting(
    "spark.sql.zorder.optimize.rewriteFactor",
    "3",
    "How many times the bytes of the new files an OPTIMIZE may rewrite of files that are " +
      "clustered already, where that makes them narrower. 0: it rewrites new files only.",
    notNegativeDouble)

  /** `rename` or `location`. */
  val publishMethod: TableSetting[String] = new TableSetting(
    "spark.sql.zorder.publish.method",
    "rename",
    "How OPTIMIZE and RESTORE put new files in the place of old ones: 'rename' moves them within " +
      "the table's folder; 'location' fills new folders and switches the location of the " +
      "table, or those of its partitions, in the catalog, at once for readers of every engine. " +
      "'location' is for external tables that nobody reads by path, and that nobody else writes " +
      "to meanwhile: catalogs have no compare-and-swap.",
    oneOf("rename", "location"))

  val readersByPath: TableSetting[Boolean] = new TableSetting(
    "spark.sql.zorder.readers.byPath",
    "false",
    "True says that somebody reads the table's folder by its path, so that its location must " +
      "stay: OPTIMIZE refuses to switch it.",
    boolean)

  val writeCluster: TableSetting[Boolean] = new TableSetting(
    "spark.sql.zorder.write.cluster",
    "false",
    "When true, INSERT and other writes into a table that declares clustering columns, by the " +
      "property zorder.clusterBy or CLUSTER BY, lay their rows out as OPTIMIZE would. The last " +
      "stage of their query runs twice, once to sample the rows.",
    boolean)

  val writeIndex: TableSetting[Boolean] = new TableSetting(
    "spark.sql.zorder.write.index",
    "true",
    "When true, INSERT and other writes into a table with a skipping index add entries of the " +
      "files they write, so that these are skipped too.",
    boolean)

  val indexMaxColumns: TableSetting[Int] = new TableSetting(
    "spark.sql.zorder.index.maxColumns",
    "32",
    "How many columns get statistics in the index when none are named, counted in the table's " +
      "order; the clustering columns always get them.",
    positiveInt)

  /** Paths of columns. */
  val indexDenyColumns: TableSetting[Seq[Seq[String]]] = new TableSetting(
    "spark.sql.zorder.index.denyColumns",
    "",
    "Columns of which an index records nothing, listed as in ZORDER BY, such as " +
      "'ssn, person.name'; a struct stands for all its fields. They cannot be clustered by. What " +
      "the session names and what the table's property names are denied both. What an index held " +
      "of them goes when it is written next, at the latest by REFRESH SKIPPING INDEX.",
    columns)

  /** Bytes. */
  val indexCacheSize: Setting[Long] = new Setting(
    "spark.sql.zorder.index.cacheSize",
    "256m",
    "How much memory of the driver the loaded indexes of all tables may take together.",
    bytes)

  /** Bytes. */
  val indexDriverLimit: TableSetting[Long] = new TableSetting(
    "spark.sql.zorder.index.driverLimit",
    "512m",
    "The statistics of an index whose file is larger are not loaded into the driver: a Spark job " +
      "asks them which files a query needs, and they give no answers of their own to COUNT, MIN, " +
      "MAX and ORDER BY … LIMIT.",
    bytes)

  val indexTrusted: TableSetting[Boolean] = new TableSetting(
    "spark.sql.zorder.index.trusted",
    "false",
    "When true, the store is not asked again whether a file that Spark has listed some time ago " +
      "and the index skips is still the same. Right for tables whose files are never replaced " +
      "by others of the same name, which is what Spark's own writers do.",
    boolean)

  val joinMaxKeys: Setting[Int] = new Setting(
    "spark.sql.zorder.join.maxKeys",
    "10000",
    "Up to how many different keys of a broadcast side are used, each for itself, to skip files " +
      "on the other side of the join; of more only the least and the greatest, and of a side " +
      "with 100 times as many rows none. 0: no file is skipped by join keys.",
    notNegativeInt)

  /** Hours. */
  val vacuumRetention: TableSetting[Int] = new TableSetting(
    "spark.sql.zorder.vacuum.retentionHours",
    "168",
    "For how many hours the files that an OPTIMIZE replaced are kept, for queries planned " +
      "before it and for RESTORE, unless VACUUM says otherwise.",
    notNegativeInt)

  val vacuumCheck: Setting[Boolean] = new Setting(
    "spark.sql.zorder.vacuum.retentionCheck",
    "true",
    "VACUUM refuses to delete what was replaced less than an hour ago, which queries that are " +
      "running may still read. False, where data must be erased at once: it does as it is told.",
    boolean)

  /** Milliseconds. */
  val journalLease: Setting[Long] = new Setting(
    "spark.sql.zorder.journal.lease",
    "120s",
    "How long a writing command that gives no sign of life keeps its lock on a table, such as " +
      "120s or 5min; then the next writing command finishes or undoes what it left.",
    milliseconds)

  /** Number of a run; empty: none. */
  val journalTakeOver: Setting[String] = new Setting(
    "spark.sql.zorder.journal.takeOver",
    "",
    "The number of the run whose writer is known to be dead, so that the next writing command " +
      "does not wait for the end of its lease.",
    identity[String])

  /** Name of a fail point; empty: none. */
  val testKillAt: Setting[String] = new Setting(
    "spark.sql.zorder.test.killAt",
    "",
    "Tests only: the point at which the process kills itself.",
    identity[String],
    public = false)

  /** Names of fail points, with commas; empty: none. */
  val testPauseAt: Setting[String] = new Setting(
    "spark.sql.zorder.test.pauseAt",
    "",
    "Tests only: the points at which the process stops until it gets SIGCONT.",
    identity[String],
    public = false)

  /** Names the settings above, and thereby makes sure that they are registered. */
  def all: Seq[Setting[_]] = Seq(
    skippingEnabled, journalOverlay, targetFileSize, batchSize, method, curve, sampleSize,
    rewriteFactor, publishMethod, readersByPath, writeCluster, writeIndex, indexMaxColumns,
    indexDenyColumns, indexCacheSize, indexDriverLimit, indexTrusted, joinMaxKeys, vacuumRetention,
    vacuumCheck, journalLease, journalTakeOver, testKillAt, testPauseAt)

  private def boolean(text: String): Boolean =
    text.trim.toLowerCase(Locale.ROOT) match {
      case "true" => true
      case "false" => false
      case _ => throw new IllegalArgumentException("It must be true or false.")
    }

  private def oneOf(values: String*)(text: String): String = {
    val value = text.trim.toLowerCase(Locale.ROOT)
    mustBe(values.contains(value), s"It must be one of ${values.mkString(", ")}.")
    value
  }

  private def columns(text: String): Seq[Seq[String]] =
    if (text.trim.isEmpty) Nil
    else
      try ColumnNames.parse(text)
      catch {
        case _: ZOrderException =>
          throw new IllegalArgumentException("It must list columns as ZORDER BY does: 'a, b.c'.")
      }

  private def bytes(text: String): Long = {
    val value =
      try JavaUtils.byteStringAs(text.trim, ByteUnit.BYTE)
      catch { case _: NumberFormatException => 0L }
    mustBe(value > 0, "It must be a size greater than 0, in bytes or with a unit, such as 256m.")
    value
  }

  private def milliseconds(text: String): Long = {
    val value =
      try JavaUtils.timeStringAs(text.trim, TimeUnit.MILLISECONDS)
      catch { case _: NumberFormatException => 0L }
    mustBe(value > 0, "It must be a time greater than 0, with a unit, such as 120s.")
    value
  }

  private def positiveInt(text: String): Int = {
    val value = int(text)
    mustBe(value > 0, "It must be a whole number greater than 0.")
    value
  }

  private def notNegativeDouble(text: String): Double = {
    val value =
      try text.trim.toDouble
      catch { case _: NumberFormatException => Double.NaN }
    mustBe(value >= 0, "It must be a number, 0 or greater.")
    value
  }

  private def notNegativeInt(text: String): Int = {
    val value = int(text)
    mustBe(value >= 0, "It must be a whole number, 0 or greater.")
    value
  }

  private def int(text: String): Int =
    try text.trim.toInt
    catch {
      case _: NumberFormatException =>
        throw new IllegalArgumentException("It must be a whole number.")
    }

  private def mustBe(condition: Boolean, sentence: String): Unit =
    if (!condition) throw new IllegalArgumentException(sentence)
}
