package io.pyzorder.index.store

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.types.DataType
import scala.jdk.CollectionConverters._

import io.pyzorder.index.model.IndexedColumn
import io.pyzorder.storage.{RunNumber, TableFolder}

/**
 * The pointer to one snapshot: what `_zorder/_index/_v<20 digits>.json` says.
 *
 * @param version     1, 2, ...; the greatest is the table's index
 * @param incarnation the life of the table it was written in
 * @param file        name of the data file beside the pointer, which no other snapshot has
 * @param length      bytes of the data file
 * @param checksum    CRC-32 of the data file
 * @param numFiles    entries in it
 * @param columns     the columns with statistics
 */
final case class SnapshotRef(
    folder: TableFolder,
    version: Long,
    incarnation: String,
    file: String,
    length: Long,
    checksum: Long,
    numFiles: Int,
    columns: Seq[IndexedColumn]) {

  /** The name of the pointer of this version. */
  def pointer: String = SnapshotRef.pointerName(version)

  /** The pointer's text. */
  def toJson: String = {
    val json = SnapshotRef.mapper.createObjectNode()
    json.put("formatVersion", SnapshotRef.FormatVersion)
    json.put("version", version)
    json.put("incarnation", incarnation)
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
    SnapshotRef.mapper.writerWithDefaultPrettyPrinter().writeValueAsString(json)
  }
}

object SnapshotRef {

  /** The version of the index table's format that this writes, and the newest it reads. */
  val FormatVersion: Int = 1

  private val mapper = new ObjectMapper()

  private val Pointer = "_v00(\\d{18})\\.json".r

  private val DataFile = "_snapshot-[^/]+".r

  /** `_v00000000000000000007.json` for 7. */
  def pointerName(version: Long): String = f"_v$version%020d.json"

  /** The version a file of `_zorder/_index` points to, None: it is no pointer. */
  def versionOf(fileName: String): Option[Long] = fileName match {
    case Pointer(digits) => RunNumber.of(digits.dropWhile(_ == '0')).filter(_ < RunNumber.Greatest)
    case _ => None
  }

  /** The pointer of this text; throws when the text is not whole, or of a newer format. */
  def fromJson(folder: TableFolder, text: String): SnapshotRef = {
    val json = mapper.readTree(text)
    val format = required(json, "formatVersion").asInt()
    if (format < 1 || format > FormatVersion) {
      throw new UnsupportedOperationException(
        s"it is written in format $format, and this pyzorder reads up to $FormatVersion")
    }
    SnapshotRef(
      folder,
      required(json, "version").asLong(),
      required(json, "incarnation").asText(),
      dataFile(required(json, "file").asText()),
      required(json, "length").asLong(),
      required(json, "crc32").asLong(),
      required(json, "numFiles").asInt(),
      required(json, "columns").elements().asScala.map { item =>
        IndexedColumn(
          required(item, "path").elements().asScala.map(_.asText()).toList,
          DataType.fromJson(required(item, "type").toString))
      }.toList)
  }

  /** The data file lies beside its pointer; another name is not followed. */
  private def dataFile(name: String): String = name match {
    case DataFile() => name
    case _ => throw new IllegalArgumentException(s"$name is no name of a snapshot's file")
  }

  private def required(json: JsonNode, name: String): JsonNode =
    if (json != null && json.hasNonNull(name)) json.get(name)
    else throw new IllegalArgumentException(s"it has no field $name")
}
