package io.pyzorder.common

import java.util.Locale
import java.util.concurrent.TimeUnit

import org.apache.spark.network.util.{ByteUnit, JavaUtils}
import org.apache.spark.sql.pyzorder.{Setting, TableSetting}

/**
 * All settings and the descriptions that `SET -v` shows. Loading this object registers the
 * settings.
 */
object ZOrderConf {

  val skippingEnabled: TableSetting[Boolean] = new TableSetting(
    "spark.sql.zorder.skipping.enabled",
    "true",
    "When false, no data file is skipped and no query is answered from the index: every query " +
      "reads all the files that plain Spark would read.",
    boolean)

  val journalOverlay: Setting[Boolean] = new Setting(
    "spark.sql.zorder.journal.overlay",
    "true",
    "When true, readers check a table's journal, so they see every row exactly once, even while " +
      "an OPTIMIZE is running or after one was killed. When false, they list the folder as plain " +
      "Spark does.",
    boolean)

  /** The unit is bytes. */
  val targetFileSize: TableSetting[Long] = new TableSetting(
    "spark.sql.zorder.optimize.targetFileSize",
    "256m",
    "The size of the files that OPTIMIZE writes, in bytes or as a size string such as 256m. If " +
      "unset, OPTIMIZE uses the size that was set for the table's last OPTIMIZE. If there is " +
      "no such size, the default is 256m, but a table of less than 8 GiB that has clustering " +
      "columns is divided into up to 32 files of at least 1m each.",
    bytes)

  /** The unit is bytes. */
  val batchSize: TableSetting[Long] = new TableSetting(
    "spark.sql.zorder.optimize.batchSize",
    "200g",
    "OPTIMIZE rewrites and publishes whole partitions, about this many bytes at a time. If an " +
      "OPTIMIZE is stopped, its finished batches are kept, and the next OPTIMIZE continues with " +
      "the rest.",
    bytes)

  /** The value is `boundaries` or `direct`. */
  val method: TableSetting[String] = new TableSetting(
    "spark.sql.zorder.optimize.method",
    "boundaries",
    "How OPTIMIZE converts values to bits. 'boundaries' uses each value's rank among sampled " +
      "values. 'direct' uses each value's own ordered bytes, and rewrites all files in every " +
      "partition that has new files. If unset, the method of the table's last OPTIMIZE is used.",
    oneOf("boundaries", "direct"))

  /** The value is `zorder`, `hilbert` or `linear`. */
  val curve: TableSetting[String] = new TableSetting(
    "spark.sql.zorder.optimize.curve",
    "zorder",
    "The order in which OPTIMIZE arranges rows: 'zorder', 'hilbert', or 'linear' (by the first " +
      "clustering column, then by the second, and so on, like ORDER BY). If unset, the curve of " +
      "the table's last OPTIMIZE is used.",
    oneOf("zorder", "hilbert", "linear"))

  /** The unit is rows. */
  val sampleSize: Setting[Int] = new Setting(
    "spark.sql.zorder.optimize.sampleSize",
    "100000",
    "The approximate number of rows that OPTIMIZE samples to find the boundaries of the " +
      "clustering columns.",
    positiveInt)

  val rewriteFactor: TableSetting[Double] = new TableSetting(
    "spark.sql.zorder.optimize.rewriteFactor",
    "3",
    "OPTIMIZE rewrites clustered files together with new files if that narrows the files' value " +
      "ranges. The total size of these clustered files is at most this many times the size of " +
      "the new files. With 0, only new files are rewritten.",
    notNegativeDouble)

  /** The value is `rename` or `location`. */
  val publishMethod: TableSetting[String] = new TableSetting(
    "spark.sql.zorder.publish.method",
    "rename",
    "How OPTIMIZE and RESTORE replace files. 'rename' moves new files into the table's folder. " +
      "'location' fills new folders and then switches the location of the table, or of its " +
      "partitions, in the catalog, so readers in every engine see the change at once. Use " +
      "'location' for external tables that are never read by path. No other job may write to the " +
      "table during the command, because catalogs do not support compare-and-swap.",
    oneOf("rename", "location"))

  val readersByPath: TableSetting[Boolean] = new TableSetting(
    "spark.sql.zorder.readers.byPath",
    "false",
    "Set this to true if the table's folder is read by path. The table's location must then not " +
      "change, so OPTIMIZE refuses to switch it.",
    boolean)

  val writeCluster: TableSetting[Boolean] = new TableSetting(
    "spark.sql.zorder.write.cluster",
    "false",
    "When true, INSERT and other writes cluster their rows as OPTIMIZE would, if the table " +
      "declares clustering columns with CLUSTER BY or the property zorder.clusterBy. The last " +
      "stage of the query then runs twice, the first time to sample the rows.",
    boolean)

  val writeIndex: TableSetting[Boolean] = new TableSetting(
    "spark.sql.zorder.write.index",
    "true",
    "When true, INSERT and other writes into a table with a skipping index add the files that " +
      "they write to the index, so queries can skip these files.",
    boolean)

  val indexMaxColumns: TableSetting[Int] = new TableSetting(
    "spark.sql.zorder.index.maxColumns",
    "32",
    "If a statement does not name any columns, the index has statistics for the first columns " +
      "of the table, up to this number. Clustering columns always have statistics.",
    positiveInt)

  /** The value is a list of column paths. */
  val indexDenyColumns: TableSetting[Seq[Seq[String]]] = new TableSetting(
    "spark.sql.zorder.index.denyColumns",
    "",
    "Columns that are excluded from every index, listed as in ZORDER BY, such as 'ssn, " +
      "person.name'. Listing a struct excludes all of its fields. Excluded columns cannot be " +
      "clustering columns. The session's list and the table property are combined. Existing " +
      "statistics of excluded columns are removed the next time the index is written, for " +
      "example by REFRESH SKIPPING INDEX.",
    columns)

  /** The unit is bytes. */
  val indexCacheSize: Setting[Long] = new Setting(
    "spark.sql.zorder.index.cacheSize",
    "256m",
    "The maximum amount of driver memory for the loaded indexes of all tables together.",
    bytes)

  /** The unit is bytes. */
  val indexDriverLimit: TableSetting[Long] = new TableSetting(
    "spark.sql.zorder.index.driverLimit",
    "512m",
    "An index file larger than this is not loaded into the driver. A Spark job then finds the " +
      "files that a query needs, and COUNT, MIN, MAX and ORDER BY … LIMIT are not answered from " +
      "the index.",
    bytes)

  /** The value is a fraction of a data file's size. */
  val sketchBudget: TableSetting[Double] = new TableSetting(
    "spark.sql.zorder.index.sketchBudget",
    "0.01",
    "The maximum size of one column's sketches in the index, as a fraction of the data's size. " +
      "With sketches, lookups of single values skip files even if the table is not clustered by " +
      "the column. New files get sketches of the columns that CREATE SKIPPING INDEX lists or, " +
      "without a list, of the columns for which sketches pay off. With 0, no sketches are written.",
    notNegativeDouble)

  /** The unit is milliseconds. */
  val indexMaxStaleness: TableSetting[Long] = new TableSetting(
    "spark.sql.zorder.index.maxStaleness",
    "0s",
    "The maximum age of the file list from which queries on a table are planned, such as 10min " +
      "or 1h. Up to that age, the list comes from the index and no folder is listed. Queries see " +
      "writes by sessions with pyzorder immediately, and other writes within this time. With 0s, " +
      "every query checks the store.",
    notNegativeMilliseconds)

  val indexTrusted: TableSetting[Boolean] = new TableSetting(
    "spark.sql.zorder.index.trusted",
    "false",
    "When true, the index is trusted regardless of its age, as if " +
      "spark.sql.zorder.index.maxStaleness were unlimited. This is safe for tables that are " +
      "written only by sessions with pyzorder. REFRESH SKIPPING INDEX picks up other writes.",
    boolean)

  val workloadRecord: TableSetting[Boolean] = new TableSetting(
    "spark.sql.zorder.workload.record",
    "false",
    "When true, queries are counted by the filters and join keys with which they read a table. " +
      "The counts are written to the table's folder once a minute, with a few of the constants " +
      "that the queries compare with. zorder_workload('table') returns them.",
    boolean)

  val joinMaxKeys: Setting[Int] = new Setting(
    "spark.sql.zorder.join.maxKeys",
    "10000",
    "Up to this many distinct keys from one side of a join, if it is broadcast or small, are " +
      "used individually to skip files on the other side. If there are more keys, they are " +
      "combined into this many ranges. If the one side has more than 100 times this many rows, " +
      "no keys are used. If the key ranges of the files on one side are used to skip files on " +
      "the other, they are combined into at most this many ranges. 0 disables skipping by join " +
      "keys.",
    notNegativeInt)

  /** The unit is milliseconds. */
  val joinMaxWait: Setting[Long] = new Setting(
    "spark.sql.zorder.join.maxWait",
    "60s",
    "How long a scan that could start immediately waits for the keys of a join, such as 500ms or " +
      "2min. If the keys are not known by then, the scan starts without them and skips no files " +
      "by these keys. With 0s, scans use only keys that they must wait for in any case.",
    notNegativeMilliseconds)

  /** The unit is hours. */
  val vacuumRetention: TableSetting[Int] = new TableSetting(
    "spark.sql.zorder.vacuum.retentionHours",
    "168",
    "How many hours to keep the files that an OPTIMIZE replaced. RESTORE needs these files, and " +
      "queries that were planned before the OPTIMIZE still read them.",
    notNegativeInt)

  val vacuumCheck: Setting[Boolean] = new Setting(
    "spark.sql.zorder.vacuum.retentionCheck",
    "true",
    "When true, VACUUM refuses to delete files that were replaced less than an hour ago, because " +
      "running queries may still read them. Set this to false only if data must be erased " +
      "immediately.",
    boolean)

  /** The unit is milliseconds. */
  val journalLease: Setting[Long] = new Setting(
    "spark.sql.zorder.journal.lease",
    "120s",
    "How long a write command keeps its lock on a table without a heartbeat, such as 120s or " +
      "5min. After this time, the next write command takes the lock, and completes or undoes " +
      "what the previous command began.",
    milliseconds)

  /** The value is a run number, or empty. */
  val journalTakeOver: Setting[String] = new Setting(
    "spark.sql.zorder.journal.takeOver",
    "",
    "The number of a run whose writer is known to be dead. The next write command then takes " +
      "the lock without waiting for that run's lease to expire.",
    identity[String])

  /** The value is the name of a fail point, or empty. */
  val testKillAt: Setting[String] = new Setting(
    "spark.sql.zorder.test.killAt",
    "",
    "For tests only: the point at which the process kills itself.",
    identity[String],
    public = false)

  /** The value consists of comma-separated names of fail points, or is empty. */
  val testPauseAt: Setting[String] = new Setting(
    "spark.sql.zorder.test.pauseAt",
    "",
    "For tests only: the points at which the process stops until it receives SIGCONT.",
    identity[String],
    public = false)

  /** All settings above. Calling this method loads the object, which registers the settings. */
  def all: Seq[Setting[_]] = Seq(
    skippingEnabled, journalOverlay, targetFileSize, batchSize, method, curve, sampleSize,
    rewriteFactor, publishMethod, readersByPath, writeCluster, writeIndex, indexMaxColumns,
    indexDenyColumns, indexCacheSize, indexDriverLimit, sketchBudget, indexMaxStaleness,
    indexTrusted, workloadRecord, joinMaxKeys, joinMaxWait,
    vacuumRetention, vacuumCheck, journalLease, journalTakeOver, testKillAt, testPauseAt)

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
          throw new IllegalArgumentException(
            "It must list columns as in ZORDER BY, such as 'a, b.c'.")
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

  private def notNegativeMilliseconds(text: String): Long = {
    val value =
      try JavaUtils.timeStringAs(text.trim, TimeUnit.MILLISECONDS)
      catch { case _: NumberFormatException => -1L }
    mustBe(value >= 0, "It must be a time with a unit, such as 10min or 1h; 0s is allowed.")
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
