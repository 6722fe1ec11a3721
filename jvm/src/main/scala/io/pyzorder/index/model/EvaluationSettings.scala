package io.pyzorder.index.model

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.{Locale, TimeZone}

import scala.util.Try

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.internal.SQLConf

/**
 * The part of a session's state that may affect an expression's value, in addition to the
 * expression's form and inputs. Spark does not declare which settings an expression reads. Every
 * `spark.sql` setting is therefore included, unless it is certain to have no effect on values.
 */
object EvaluationSettings {

  /**
   * Prefixes of the names of settings that are not included. Most of these settings determine how
   * files are found, read and written, how queries are planned and executed, and what is displayed.
   * The session's time zone is not included because it is part of the form of every expression that
   * depends on it. Settings that affect how stored values are read are covered by ReadSettings.
   */
  private val Irrelevant = Seq(
    "adaptive.", "artifact.", "autoBroadcastJoinThreshold", "bucketing.", "cache.", "catalog",
    "cbo.", "cli.", "codegen.", "debug.", "defaultCatalog", "event", "exchange.", "execution.",
    "extensions", "files.", "globalTempDatabase", "hive.", "inMemoryColumnarStorage.", "join.",
    "leafNodeDefaultParallelism", "limit.", "maxPlanStringLength", "metadataCacheTTLSeconds",
    "optimizer.", "orc.", "parquet.", "pyspark.", "queryExecutionListeners", "redaction.", "repl.",
    "session.timeZone", "shuffle.", "sources.", "statistics.", "storeAssignmentPolicy",
    "streaming.", "thriftServer.", "ui.", "variant.pushVariantIntoScan", "warehouse.", "zorder.")
    .map("spark.sql." + _)

  /**
   * The settings as `name=value` pairs. The settings that do not have a pair of their own are
   * hashed together, because their values may be confidential.
   */
  def of(conf: SQLConf): String = Seq(
    "spark" -> SPARK_VERSION,
    "java" -> System.getProperty("java.specification.version"),
    "locale" -> Locale.getDefault.toString,
    "jvmTimeZone" -> TimeZone.getDefault.getID,
    "caseSensitive" -> conf.caseSensitiveAnalysis,
    "ansi" -> conf.ansiEnabled,
    "others" -> hash(others(conf))).map { case (name, value) => s"$name=$value" }.mkString(";")

  /** The included settings whose values differ from Spark's defaults. */
  private def others(conf: SQLConf): Seq[String] = {
    val defaults = new SQLConf
    conf.getAllConfs.toSeq.filter { case (key, value) =>
      key.startsWith("spark.sql.") && !Irrelevant.exists(key.startsWith) &&
      !Try(defaults.getConfString(key)).toOption.contains(value)
    }.map { case (key, value) => s"$key=$value" }.sorted
  }

  private def hash(lines: Seq[String]): String =
    if (lines.isEmpty) "default"
    else MessageDigest.getInstance("SHA-256").digest(lines.mkString("\n").getBytes(UTF_8))
      .map(byte => f"$byte%02x").mkString
}
