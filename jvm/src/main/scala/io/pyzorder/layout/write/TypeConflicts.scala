package io.pyzorder.layout.write

import java.util.Locale

import scala.collection.mutable
import scala.util.Try

import org.apache.commons.lang3.exception.ExceptionUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.orc.OrcFile
import org.apache.parquet.HadoopReadOptions
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.spark.sql.execution.datasources.orc.OrcUtils
import org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types._
import org.apache.spark.util.SerializableConfiguration

import io.pyzorder.common.{TaskFunction, ZOrderErrors, ZOrderException}

/** Finds two files whose types for the same column cannot be combined in one table. */
object TypeConflicts {

  /**
   * Maps each column and struct field to its types in the files, and each of these types to the
   * first file that uses it.
   */
  private type Types = mutable.LinkedHashMap[String, mutable.LinkedHashMap[DataType, String]]

  /**
   * Whether a type conflict may have caused the failure. Spark reports such conflicts in many ways.
   */
  def mayBe(failure: Throwable): Boolean =
    ExceptionUtils.getThrowables(failure)
      .exists(cause => Said.findFirstIn(cause.toString).isDefined)

  private val Said = ("SchemaColumnConvertNotSupported|PARQUET_COLUMN_DATA_TYPE_MISMATCH|" +
    "ParquetDecodingException|sql[.]types[.]\\S+ cannot be cast|CANNOT_MERGE|" +
    "Failed merging schema|Failed to merge").r

  /** Finds a conflict among the files of a folder for which no table declares column types. */
  def among(
      session: shim.SparkSession,
      format: String,
      paths: Seq[String]): Option[ZOrderException] =
    read(session, format, paths, Nil).iterator.flatMap { case (column, types) =>
      val found = types.toSeq
      found.tail.find(other => !merge(found.head._1, other._1)).map(found.head -> _).map {
        case (one, other) => error(column, one, other)
      }
    }.toSeq.headOption

  /** Finds a conflict between a table's files and the types that the table declares. */
  def of(
      session: shim.SparkSession,
      format: String,
      paths: Seq[String],
      declared: StructType,
      table: String): Option[ZOrderException] = {
    val types = flat("", declared).map { case (name, dataType) => key(name) -> dataType }.toMap
    val found = read(session, format, paths, declared.fieldNames.toSeq)
    def conflict(differs: (DataType, DataType) => Boolean): Option[ZOrderException] =
      found.iterator.flatMap { case (column, files) =>
        types.get(key(column)).flatMap { own =>
          files.find(file => differs(file._1, own)).map { bad =>
            error(column, files.find(_._1 == own).getOrElse(own -> s"table $table"), bad)
          }
        }
      }.toSeq.headOption
    // Parquet's reader rejects some types even if their values would fit, and may have rejected
    // such a type here.
    conflict(!Widening.keeps(_, _)).orElse(conflict(_.getClass != _.getClass))
  }

  /**
   * Whether Spark can read files with one type and files with the other from the same folder, if
   * the folder is not a table in the catalog.
   */
  private def merge(one: DataType, other: DataType): Boolean = (one, other) match {
    case (a: DecimalType, b: DecimalType) => a.scale == b.scale
    case (a, b) => a.getClass == b.getClass
  }

  private def error(
      column: String,
      one: (DataType, String),
      other: (DataType, String)): ZOrderException =
    ZOrderErrors.incompatibleTypes(column, nameOf(one._1), one._2, nameOf(other._1), other._2)

  private def nameOf(dataType: DataType): String = dataType match {
    case _: StructType | _: ArrayType | _: MapType => dataType.typeName.toUpperCase(Locale.ROOT)
    case _ => dataType.sql
  }

  private def key(name: String): String = name.toLowerCase(Locale.ROOT)

  /**
   * The column types in all files that can be read, keyed by column name. Runs one Spark job.
   *
   * @param names the column names, which are needed because ORC files written by Hive do not
   *              contain them
   */
  private def read(
      session: shim.SparkSession,
      format: String,
      paths: Seq[String],
      names: Seq[String]): Types = {
    val conf = new SerializableConfiguration(session.sessionState.newHadoopConf())
    val context = session.sparkContext
    val tasks = math.max(1, math.min(paths.length, context.defaultParallelism * 2))
    val found = context.parallelize(paths, tasks).mapPartitions(TaskFunction {
      (paths: Iterator[String]) =>
        Iterator(gathered(paths.flatMap { path =>
          val schema = Try(schemaOf(format, new Path(path), conf.value)).toOption
          schema.map(named(_, names)).toSeq.flatMap(flat("", _)).map {
            case (name, dataType) => (name, dataType, path)
          }
        }))
    }).collect()
    gathered(found.iterator.flatMap(types =>
        for ((name, files) <- types.iterator; (dataType, path) <- files)
          yield (name, dataType, path)))
  }

  private def gathered(found: Iterator[(String, DataType, String)]): Types = {
    val types: Types = mutable.LinkedHashMap.empty
    found.foreach { case (name, dataType, path) =>
      types.getOrElseUpdate(name, mutable.LinkedHashMap.empty).getOrElseUpdate(dataType, path)
    }
    types
  }

  private def named(file: StructType, names: Seq[String]): StructType =
    if (!file.fieldNames.forall(_.matches("_col\\d+"))) file
    else StructType(file.zip(names).map { case (field, name) => field.copy(name = name) })

  private def schemaOf(format: String, path: Path, conf: Configuration): StructType =
    if (format == "orc") {
      val reader = OrcFile.createReader(path, OrcFile.readerOptions(conf))
      try OrcUtils.toCatalystSchema(reader.getSchema)
      finally reader.close()
    } else {
      val reader = ParquetFileReader.open(
        HadoopInputFile.fromPath(path, conf), HadoopReadOptions.builder(conf, path).build())
      try new ParquetToSparkSchemaConverter(SQLConf.get).convert(
          reader.getFooter.getFileMetaData.getSchema)
      finally reader.close()
    }

  /**
   * All columns and nested fields with their types. Structs, arrays and maps appear without their
   * fields and elements, which are listed separately.
   */
  private def flat(prefix: String, struct: StructType): Seq[(String, DataType)] =
    struct.toSeq.flatMap(field => flat(prefix + field.name, field.dataType))

  private def flat(name: String, dataType: DataType): Seq[(String, DataType)] = dataType match {
    case fields: StructType => (name -> new StructType()) +: flat(s"$name.", fields)
    case ArrayType(element, _) => (name -> ArrayType(NullType)) +: flat(s"$name.element", element)
    case MapType(key, value, _) =>
      val inside = flat(s"$name.key", key) ++ flat(s"$name.value", value)
      (name -> MapType(NullType, NullType)) +: inside
    case other => Seq(name -> other)
  }
}
