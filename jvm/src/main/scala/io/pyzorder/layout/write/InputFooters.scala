package io.pyzorder.layout.write

import java.util.Locale

import scala.collection.mutable.LinkedHashSet
import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success, Try}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.orc.OrcFile
import org.apache.parquet.HadoopReadOptions
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.schema.{LogicalTypeAnnotation, MessageType, Type}
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName.INT96
import org.apache.spark.sql.execution.datasources.orc.OrcUtils
import org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types._
import org.apache.spark.util.SerializableConfiguration

import io.pyzorder.common.{JobDescription, TaskFunction, ZOrderErrors}

/**
 * Information from the footer of a data file.
 *
 * @param path       the file
 * @param numRows    number of rows
 * @param codec      the compression codec, as a value of the format's `compression` option; None if
 *                   the file has no data
 * @param timestamps how Parquet timestamps are stored, expressed as values of
 *                   spark.sql.parquet.outputTimestampType
 * @param plain      the columns of a Parquet file that have no dictionary; None if no column has a
 *                   dictionary, or if the file is not Parquet
 * @param undeclared columns and struct fields that are missing from the table's schema
 * @param lacking    columns of the table's schema that are missing from the file
 * @param lossy      whether an ORC file may contain values that do not fit the table's types. Spark
 *                   reads such values as null. Always false for Parquet, because reading such
 *                   values fails
 */
final case class InputFooters(
    path: String,
    numRows: Long,
    codec: Option[String],
    timestamps: Set[String],
    plain: Option[Set[String]],
    undeclared: Seq[String],
    lacking: Seq[String],
    lossy: Boolean)

object InputFooters {

  /**
   * Reads the footers of files in one Spark job and returns them in the order of `paths`. Throws
   * ZORDER_UNREADABLE_FILE if a file cannot be read.
   */
  def read(
      session: shim.SparkSession,
      format: String,
      schema: StructType,
      paths: Seq[String]): Seq[InputFooters] = {
    val caseSensitive = session.sessionState.conf.caseSensitiveAnalysis
    val conf = new SerializableConfiguration(session.sessionState.newHadoopConf())
    val context = session.sparkContext
    val tasks = math.max(1, math.min(paths.length, context.defaultParallelism * 2))
    val facts = context.parallelize(paths, tasks).map(TaskFunction { (path: String) =>
      val comparison = new Comparison(caseSensitive)
      Try {
        if (format == "orc") ofOrc(path, schema, comparison, conf.value)
        else ofParquet(path, schema, comparison, conf.value)
      }
    })
    val read = JobDescription.step(context, "read file footers")(facts.collect())
    paths.zip(read).map {
      case (_, Success(facts)) => facts
      case (path, Failure(failure)) => throw ZOrderErrors.unreadable(path, failure)
    }
  }

  /** Throws ZORDER_UNDECLARED_COLUMNS if rewriting a file would lose a column. */
  def check(facts: Seq[InputFooters]): Unit =
    facts.find(_.undeclared.nonEmpty).foreach { file =>
      throw ZOrderErrors.undeclaredColumns(file.path, file.undeclared)
    }

  /** A table's options. If none of them names a codec, the files' most common codec is added. */
  def withCodec(
      options: Map[String, String],
      facts: Iterable[InputFooters]): Map[String, String] = {
    val named = options.keys.exists(key => CodecOptions(key.toLowerCase(Locale.ROOT)))
    val codecs = facts.flatMap(_.codec).groupBy(identity).map { case (k, v) => k -> v.size }
    if (named || codecs.isEmpty) options
    else options + ("compression" -> codecs.maxBy(_.swap)._1)
  }

  private val CodecOptions = Set("compression", "parquet.compression", "orc.compress")

  /**
   * A table's options, with dictionaries disabled for the Parquet columns that have no dictionary
   * in any file. The writer then does not try to build dictionaries for these columns.
   *
   * @param but the columns by which the rewrite sorts the rows. For these columns, a dictionary may
   *            now be worthwhile
   */
  def withoutDictionaries(
      options: Map[String, String],
      facts: Iterable[InputFooters],
      but: Set[String]): Map[String, String] = {
    val plain = facts.flatMap(_.plain).reduceOption(_ & _).getOrElse(Set.empty)
    (plain -- but).map(FileWriters.dictionaryOf(_) -> "false").toMap ++ options
  }

  /**
   * The value of spark.sql.parquet.outputTimestampType that can represent all timestamps in the
   * files.
   */
  def timestampType(facts: Iterable[InputFooters]): Option[String] = {
    val types = facts.flatMap(_.timestamps).toSet
    Seq("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS").find(types)
  }

  private def ofParquet(
      path: String,
      schema: StructType,
      comparison: Comparison,
      conf: Configuration): InputFooters = {
    val file = new Path(path)
    val reader = ParquetFileReader.open(
      HadoopInputFile.fromPath(file, conf), HadoopReadOptions.builder(conf, file).build())
    val footer =
      try reader.getFooter
      finally reader.close()
    val message = footer.getFileMetaData.getSchema
    val blocks = footer.getBlocks.asScala
    val chunks = blocks.iterator.flatMap(_.getColumns.asScala)
    val fields = new ParquetToSparkSchemaConverter(SQLConf.get).convert(message)
    InputFooters(
      path,
      blocks.map(_.getRowCount).sum,
      if (chunks.hasNext) Some(chunks.next().getCodec.name.toLowerCase(Locale.ROOT)) else None,
      timestampsOf(message),
      plainOf(blocks.flatMap(_.getColumns.asScala)),
      comparison.undeclared(fields, schema),
      comparison.lacking(fields, schema),
      lossy = false)
  }

  /** The columns that have no dictionary in any row group; None if no column has a dictionary. */
  private def plainOf(chunks: Iterable[ColumnChunkMetaData]): Option[Set[String]] = {
    val (dictionaries, plain) = chunks.partition(_.hasDictionaryPage)
    if (dictionaries.isEmpty) None
    else Some((plain.map(_.getPath).toSet -- dictionaries.map(_.getPath)).map(_.toDotString))
  }

  private def timestampsOf(message: MessageType): Set[String] =
    message.getPaths.asScala.map(message.getType(_: _*)).flatMap { leaf: Type =>
      leaf.getLogicalTypeAnnotation match {
        case t: LogicalTypeAnnotation.TimestampLogicalTypeAnnotation =>
          Some(if (t.getUnit == LogicalTypeAnnotation.TimeUnit.MILLIS) "TIMESTAMP_MILLIS"
            else "TIMESTAMP_MICROS")
        case _ if leaf.asPrimitiveType.getPrimitiveTypeName == INT96 => Some("INT96")
        case _ => None
      }
    }.toSet

  private def ofOrc(
      path: String,
      schema: StructType,
      comparison: Comparison,
      conf: Configuration): InputFooters = {
    val reader = OrcFile.createReader(new Path(path), OrcFile.readerOptions(conf))
    try {
      val fields = OrcUtils.toCatalystSchema(reader.getSchema)
      val byPosition = fields.nonEmpty && fields.fieldNames.forall(_.matches("_col\\d+"))
      InputFooters(
        path,
        reader.getNumberOfRows,
        Some(reader.getCompressionKind.name.toLowerCase(Locale.ROOT)),
        Set.empty,
        None,
        if (byPosition) fields.fieldNames.drop(schema.length).toSeq
        else comparison.undeclared(fields, schema),
        if (byPosition) schema.fieldNames.drop(fields.length).toSeq
        else comparison.lacking(fields, schema),
        if (byPosition) fields.zip(schema).exists { case (f, t) => comparison.lossy(f, t) }
        else comparison.lossy(fields, schema))
    } finally reader.close()
  }

  /** Compares a file's schema with the table's. */
  private final class Comparison(caseSensitive: Boolean) {

    private val found = LinkedHashSet.empty[String]

    def undeclared(file: StructType, table: StructType): Seq[String] = {
      compare("", file, table)
      found.toSeq
    }

    def lacking(file: StructType, table: StructType): Seq[String] = {
      val there = file.fieldNames.map(key).toSet
      table.fieldNames.filterNot(name => there(key(name))).toSeq
    }

    def lossy(file: StructField, table: StructField): Boolean =
      lossy(file.dataType, table.dataType)

    def lossy(file: DataType, table: DataType): Boolean = (file, table) match {
      case (f: StructType, t: StructType) =>
        f.exists(field =>
          t.find(other => key(other.name) == key(field.name)).exists(lossy(field, _)))
      case (f: ArrayType, t: ArrayType) => lossy(f.elementType, t.elementType)
      case (f: MapType, t: MapType) =>
        lossy(f.keyType, t.keyType) || lossy(f.valueType, t.valueType)
      case (f, t) => !Widening.keeps(f, t)
    }

    private def compare(prefix: String, file: DataType, table: DataType): Unit =
      (file, table) match {
        case (f: StructType, t: StructType) =>
          f.groupBy(field => key(field.name)).foreach { case (_, fields) =>
            fields.tail.foreach(field => found += s"another column $prefix${field.name}")
            t.find(other => key(other.name) == key(fields.head.name)) match {
              case Some(same) =>
                compare(prefix + fields.head.name + ".", fields.head.dataType, same.dataType)
              case None => found += prefix + fields.head.name
            }
          }
        case (f: ArrayType, t: ArrayType) =>
          compare(prefix + "element.", f.elementType, t.elementType)
        case (f: MapType, t: MapType) =>
          compare(prefix + "key.", f.keyType, t.keyType)
          compare(prefix + "value.", f.valueType, t.valueType)
        case _ =>
      }

    private def key(name: String): String =
      if (caseSensitive) name else name.toLowerCase(Locale.ROOT)
  }
}
