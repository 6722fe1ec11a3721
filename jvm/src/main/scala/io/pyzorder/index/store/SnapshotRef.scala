package io.pyzorder.index.store

import java.nio.charset.StandardCharsets.UTF_8

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.types.DataType
import scala.jdk.CollectionConverters._

import io.pyzorder.common.BoundedJson
import io.pyzorder.index.model.{ExpressionColumn, IndexedColumn, IndexedColumns, ZValueColumn}
import io.pyzorder.storage.TableFolder
import io.pyzorder.storage.metadata.MetadataNames

/**
 * The pointer to one snapshot: the contents of `_zorder/_index/_v<20 digits>.json`.
 *
 * @param version     the version, starting at 1; the highest version is the table's current index
 * @param incarnation the incarnation of the table for which the snapshot was written
 * @param lineage     an id that is drawn for the first snapshot of an index and copied to all later
 *                    ones, because the versions of another index may be the same; empty if an
 *                    earlier version of pyzorder created the index
 * @param file        the unique name of the data file, which is next to the pointer
 * @param length      the size of the data file in bytes
 * @param checksum    the CRC-32 of the data file
 * @param numFiles    the number of entries in the data file
 * @param columns     the columns with statistics
 * @param coverage    the snapshot's coverage; None if it does not cover any folder
 * @param coverableSince the last version whose writer added files without adding entries, or
 *                       deleted or moved files; 0 if there is none. A listing that began before
 *                       that version was published does not cover any folder
 * @param sketches    the segments that contain sketches of the snapshot's files
 * @param sketched    the names of the columns for which sketches of new files are collected; None
 *                    if these columns have not been chosen yet
 */
final case class SnapshotRef(
    folder: TableFolder,
    version: Long,
    incarnation: String,
    file: String,
    length: Long,
    checksum: Long,
    numFiles: Int,
    columns: Seq[IndexedColumn],
    coverage: Option[Coverage],
    coverableSince: Long,
    sketches: Seq[SegmentRef] = Nil,
    sketched: Option[Seq[String]] = None,
    lineage: String = "") {

  /** Whether a CREATE SKIPPING INDEX has not indexed the table's files yet, or was interrupted. */
  def isUnfinished: Boolean = numFiles == 0 && coverage.isEmpty

  /** The Parquet data file. */
  def dataFile: Path = new Path(folder.index, file)

  /** The path of this pointer. */
  def pointer: Path = MetadataNames.pointer(folder, version)

  /** The pointer's contents. */
  def toJson: String = {
    val json = SnapshotRef.mapper.createObjectNode()
    json.put("formatVersion", SnapshotRef.FormatVersion)
    json.put("version", version)
    json.put("incarnation", incarnation)
    json.put("lineage", lineage)
    json.put("file", file)
    json.put("length", length)
    json.put("crc32", checksum)
    json.put("numFiles", numFiles)
    val list = json.putArray("columns")
    columns.foreach { column =>
      val item = list.addObject()
      val path = item.putArray("path")
      column.path.foreach(part => path.add(part))
      item.set[JsonNode]("type", SnapshotRef.mapper.readTree(column.dataType.json))
    }
    json.put("coverableSince", coverableSince)
    coverage.foreach { known =>
      val item = json.putObject("coverage")
      item.put("listedAt", known.listedAt)
      item.put("whole", known.isWhole)
    }
    sketched.foreach { columns =>
      val names = json.putArray("sketched")
      columns.foreach(name => names.add(name))
    }
    if (sketches.nonEmpty) {
      val segments = json.putArray("sketches")
      sketches.foreach { segment =>
        val item = segments.addObject()
        item.put("file", segment.file)
        item.put("length", segment.length)
        item.put("directory", segment.directory)
        item.put("crc32", segment.checksum)
      }
    }
    SnapshotRef.mapper.writerWithDefaultPrettyPrinter().writeValueAsString(json)
  }
}

object SnapshotRef {

  /**
   * The format version of the index tables that pyzorder writes. pyzorder does not read newer
   * versions.
   */
  val FormatVersion: Int = 2

  private val mapper = new ObjectMapper()

  /** The maximum length of a name in a column's path. */
  private val MaxName = 65535

  /** The maximum number of z-value columns. An OPTIMIZE with the direct method adds at most one. */
  private val MaxCurves = 16

  /** The given columns, without the oldest z-value columns if there are too many of them. */
  def withoutOldCurves(columns: Seq[IndexedColumn]): Seq[IndexedColumn] = {
    columns.diff(columns.filter(isCurve).dropRight(MaxCurves))
  }

  private def isCurve(column: IndexedColumn): Boolean = ZValueColumn.unapply(column).isDefined

  private val DataFile = "_snapshot-[^/]+".r

  /** Parses a pointer. Throws if the text is incomplete or has a newer format. */
  def fromJson(folder: TableFolder, text: String): SnapshotRef = {
    val json = BoundedJson.tree(text.getBytes(UTF_8))
    val format = required(json, "formatVersion").asInt()
    if (format < 1 || format > FormatVersion) {
      throw new UnsupportedOperationException(
        s"it has format version $format, but this pyzorder reads versions up to $FormatVersion")
    }
    SnapshotRef(
      folder,
      required(json, "version").asLong(),
      required(json, "incarnation").asText(),
      dataFile(required(json, "file").asText()),
      required(json, "length").asLong(),
      required(json, "crc32").asLong(),
      required(json, "numFiles").asInt(),
      checked(required(json, "columns").elements().asScala.map { item =>
        IndexedColumn(
          required(item, "path").elements().asScala.map(_.asText()).toList,
          typeOf(required(item, "type")))
      }.toList),
      Option(json.get("coverage")).filter(_.isObject).map { item =>
        Coverage(required(item, "listedAt").asLong(), required(item, "whole").asBoolean())
      },
      Option(json.get("coverableSince")).fold(0L)(_.asLong()),
      membersOf(json, "sketches").map { item =>
        SegmentRef(
          required(item, "file").asText(),
          required(item, "length").asLong(),
          required(item, "directory").asLong(),
          required(item, "crc32").asLong())
      }.filter(isSegment).take(SegmentRef.MaxSegments),
      Option(json.get("sketched")).map(_ => membersOf(json, "sketched").map(_.asText())),
      json.path("lineage").asText())
  }

  private def membersOf(json: JsonNode, name: String): Seq[JsonNode] =
    Option(json.get(name)).fold(Seq.empty[JsonNode])(_.elements().asScala.toList)

  /** Whether this may be a segment that pyzorder wrote next to the pointer. */
  private def isSegment(segment: SegmentRef): Boolean =
    SegmentRef.versionOf(segment.file).isDefined && segment.length <= SegmentRef.MaxBytes &&
      segment.directory >= 0 && segment.directory <= segment.length

  /**
   * Throws unless these are valid columns of an index. Without limits, a forged pointer could make
   * planning slow, because the cost of some rules grows with the number of columns or even with its
   * square.
   */
  private def checked(columns: List[IndexedColumn]): List[IndexedColumn] = {
    if (columns.length > IndexedColumn.MaxColumns || columns.count(isCurve) > MaxCurves ||
      columns.count(ExpressionColumn.matches) > ExpressionColumn.MaxColumns ||
      columns.exists(c => c.path.isEmpty || c.path.length > IndexedColumn.MaxDepth) ||
      columns.exists(_.path.exists(_.length > MaxName)) ||
      columns.map(_.path).toSet.size < columns.length) {
      throw new IllegalArgumentException(
        s"its ${columns.length} columns include duplicates or columns without a name, or exceed " +
          "the limits on the number of columns, the depth of nesting or the length of names")
    }
    columns
  }

  /**
   * The type of an indexed column, which is atomic and therefore a string in JSON. Anything else is
   * rejected before Spark parses it, because a forged type could be deeply nested, or could be a
   * user-defined type, whose class Spark would load.
   */
  private def typeOf(json: JsonNode): DataType = {
    if (!json.isTextual) throw new IllegalArgumentException("a column's type is not atomic")
    val parsed = DataType.fromJson(json.toString)
    if (IndexedColumns.supports(parsed)) parsed
    else throw new IllegalArgumentException(s"columns of type ${json.asText} cannot be indexed")
  }

  /**
   * Checks that `name` is the name of a data file next to the pointer, not a path to another file.
   */
  private def dataFile(name: String): String = name match {
    case DataFile() => name
    case _ => throw new IllegalArgumentException(s"$name is not the name of a snapshot file")
  }

  private def required(json: JsonNode, name: String): JsonNode =
    if (json != null && json.hasNonNull(name)) json.get(name)
    else throw new IllegalArgumentException(s"it has no field $name")
}
