package io.pyzorder.catalog

import scala.util.Try

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.pyzorder.{shim, SessionAccess}
import org.apache.spark.sql.types.StructType

import io.pyzorder.common.ZOrderErrors

/**
 * Prevents an OPTIMIZE of a path from changing the stored column types. OPTIMIZE writes each column
 * with the type that it has in the session. A few settings make Spark read a Parquet type as a
 * different type, which the new files would then store. A catalog table declares its types, so
 * these settings do not affect it.
 */
object StoredTypes {

  private val settings = Seq(SQLConf.PARQUET_BINARY_AS_STRING,
    SQLConf.LEGACY_PARQUET_NANOS_AS_LONG, SQLConf.PARQUET_INFER_TIMESTAMP_NTZ_ENABLED)

  /**
   * Throws ZORDER_SETTING_CHANGES_TYPES if Spark would read different column types without the
   * settings above.
   */
  def check(session: shim.SparkSession, table: ResolvedTable): Unit = {
    val set = settings.map(_.key).filter(session.sessionState.conf.contains)
    if (table.identifier.isEmpty && table.provider == "parquet" && set.nonEmpty) {
      val plain = SessionAccess.cloned(session)
      set.foreach(plain.sessionState.conf.unsetConf)
      val stored = SessionAccess.withActive(plain) {
        Try(new TargetLookup(plain).ofPath(table.root.toString, Some(table.provider)).dataSchema)
      }.getOrElse(new StructType) // without these settings, Spark cannot read the files
      val others = table.dataSchema.filterNot(stored.contains)
      if (others.nonEmpty) {
        throw ZOrderErrors.settingChangesTypes(set, others.map(_.name))
      }
    }
  }
}
