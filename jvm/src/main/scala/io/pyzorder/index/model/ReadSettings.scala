package io.pyzorder.index.model

import java.util.{Locale, TimeZone}

import org.apache.spark.sql.execution.datasources.parquet.ParquetUtils
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType

/**
 * The settings that determine which values a scan reads from the bytes of a file.
 *
 * @param structural the settings that determine which column of a file a name refers to, and which
 *                   type Spark reads this column as. A file's statistics are valid only for scans
 *                   with the same structural settings
 * @param temporal   the settings that determine how Spark converts stored dates and timestamps when
 *                   it reads them. Statistics that are `settingsDependent` are valid only for scans
 *                   with the same temporal settings
 */
final case class ReadSettings(structural: String, temporal: String) {

  /** `structural` and `temporal` joined into one string, as stored in the index table. */
  def fingerprint: String = structural + ReadSettings.Separator + temporal
}

object ReadSettings {

  private val Separator = " | "

  /**
   * Parses a fingerprint. If the fingerprint is invalid, returns settings that do not match any
   * scan.
   */
  def parse(fingerprint: String): ReadSettings = {
    val cut = fingerprint.indexOf(Separator)
    if (cut < 0) ReadSettings("unreadable: " + fingerprint, "")
    else ReadSettings(fingerprint.take(cut), fingerprint.drop(cut + Separator.length))
  }

  /**
   * The settings under which `session` scans a relation with these `options`. Option names are
   * compared without regard to case.
   */
  def of(
      session: shim.SparkSession,
      options: Map[String, String],
      schema: StructType): ReadSettings = {
    val settings = new Lookup(session, options)
    ReadSettings(structural(settings, matchesFieldIds(session, schema)), temporal(settings))
  }

  /**
   * Whether columns are found by field id rather than by name. If so, the table has no statistics.
   * Delta's extension enables Spark's setting for field ids in every session, but Spark uses ids
   * only if the schema contains them.
   */
  def matchesFieldIds(session: shim.SparkSession, schema: StructType): Boolean =
    session.sessionState.conf.getConf(SQLConf.PARQUET_FIELD_ID_READ_ENABLED) &&
      ParquetUtils.hasFieldIds(schema)

  /**
   * Whether ORC columns are found by position rather than by name. If so, the table has no
   * statistics.
   */
  def matchesPositions(session: shim.SparkSession, options: Map[String, String]): Boolean =
    new Lookup(session, options).other("orc.force.positional.evolution").toLowerCase(Locale.ROOT) ==
      "true"

  private def structural(settings: Lookup, fieldIds: Boolean): String = {
    val conf = settings.conf
    Seq(
      "caseSensitive" -> conf.caseSensitiveAnalysis,
      "fieldIds" -> fieldIds,
      "binaryAsString" -> conf.getConf(SQLConf.PARQUET_BINARY_AS_STRING),
      "int96AsTimestamp" -> conf.getConf(SQLConf.PARQUET_INT96_AS_TIMESTAMP),
      "nanosAsLong" -> conf.getConf(SQLConf.LEGACY_PARQUET_NANOS_AS_LONG),
      "inferTimestampNtz" -> conf.getConf(SQLConf.PARQUET_INFER_TIMESTAMP_NTZ_ENABLED),
      "orcImplementation" -> conf.getConf(SQLConf.ORC_IMPLEMENTATION),
      "orcPositions" -> settings.other("orc.force.positional.evolution")).map {
      case (name, value) => s"$name=$value"
    }.mkString(";")
  }

  private def temporal(settings: Lookup): String = {
    val conf = settings.conf
    Seq(
      "timeZone" -> conf.sessionLocalTimeZone,
      "jvmTimeZone" -> TimeZone.getDefault.getID,
      "int96Conversion" -> conf.getConf(SQLConf.PARQUET_INT96_TIMESTAMP_CONVERSION),
      "datetimeRebase" -> datetimeRebase(settings),
      "int96Rebase" -> int96Rebase(settings),
      "orcProleptic" -> settings.other("orc.proleptic.gregorian.default")).map {
      case (name, value) => s"$name=$value"
    }.mkString(";")
  }

  /**
   * The rebase mode for Parquet dates and INT64 timestamps in files that do not record a calendar.
   */
  private[index] def datetimeRebase(
      session: shim.SparkSession,
      options: Map[String, String]): String = datetimeRebase(new Lookup(session, options))

  /** The rebase mode for Parquet INT96 timestamps in files that do not record a calendar. */
  private[index] def int96Rebase(session: shim.SparkSession, options: Map[String, String]): String =
    int96Rebase(new Lookup(session, options))

  private def datetimeRebase(settings: Lookup): String =
    settings.option("datetimeRebaseMode")
      .getOrElse(settings.conf.getConf(SQLConf.PARQUET_REBASE_MODE_IN_READ).toString)
      .toUpperCase(Locale.ROOT)

  private def int96Rebase(settings: Lookup): String =
    settings.option("int96RebaseMode")
      .getOrElse(settings.conf.getConf(SQLConf.PARQUET_INT96_REBASE_MODE_IN_READ).toString)
      .toUpperCase(Locale.ROOT)

  private class Lookup(session: shim.SparkSession, options: Map[String, String]) {

    val conf: SQLConf = session.sessionState.conf

    private val lowered = options.map { case (key, value) => key.toLowerCase(Locale.ROOT) -> value }

    def option(name: String): Option[String] = lowered.get(name.toLowerCase(Locale.ROOT))

    /**
     * The value of a Hadoop key. As in Spark, options override session settings, which override the
     * Hadoop configuration of the SparkContext.
     */
    def other(key: String): String =
      option(key)
        .orElse(Option(conf.getConfString(key, null)))
        .orElse(Option(session.sparkContext.hadoopConfiguration.get(key)))
        .getOrElse("")
  }
}
