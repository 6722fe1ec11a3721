package io.pyzorder.publish.journal

import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.catalyst.TableIdentifier

import io.pyzorder.common.{BoundedJson, Printable}
import io.pyzorder.storage.{FileRef, Incarnation, ProcessId, SiblingFolder, TableFolder}

/**
 * Identifies the holder of the lock. `owner` is a random string that distinguishes the writers
 * within one process.
 */
final case class PrepareRecord(
    incarnation: String,
    operation: String,
    owner: String,
    process: ProcessId,
    began: Long,
    lease: Long)

/**
 * The files that a run replaces, the files that replace them, and the folders with the run's
 * marker.
 *
 * @param layout the parameters of the table's layout once the run is committed; None if unknown
 * @param marked the modification times of the run's markers, keyed by folder; some folders may be
 *               missing
 */
final case class RetireRecord(
    incarnation: String,
    retire: Seq[FileRef],
    add: Seq[FileRef],
    folders: Seq[String],
    layout: Option[LayoutRecord] = None,
    marked: Map[String, Long] = Map.empty) {

  /** All folders that the record names. */
  def named: Seq[String] = ((retire ++ add).map(_.folder) ++ folders).distinct

  /** The record without the files and folders that do not belong to the table. */
  def within(table: TableFolder): RetireRecord = {
    val strange = named.filterNot(table.holds).toSet
    if (strange.isEmpty) this
    else copy(
      retire = retire.filterNot(file => strange(file.folder)),
      add = add.filterNot(file => strange(file.folder)),
      folders = folders.filterNot(strange))
  }
}

/**
 * The record of a run that publishes its files by changing the table's location in the catalog; see
 * TableLocationSwitch.
 *
 * @param table the table in the session catalog, with its database
 * @param to    the name of the sibling folder that becomes the table's location
 * @param read  every file in the table's folder; `to` is filled from these files
 */
final case class SwitchRecord(
    incarnation: String,
    table: TableIdentifier,
    to: String,
    read: Seq[FileRef])

/**
 * One partition that a run switches to another folder.
 *
 * @param spec the partition's values, keyed by column, as stored in the catalog
 * @param from the partition's folder, in the form of FileRef.folder
 * @param to   the partition's path within the new folder, such as `day=1/hour=2`
 */
final case class PartitionMove(spec: Map[String, String], from: String, to: String)

/**
 * The record of a run that switches the locations of partitions; see PartitionLocationSwitch.
 *
 * @param table the table in the session catalog, with its database
 * @param to    the name of the sibling folder that contains the partitions' new folders
 * @param read  every file in the partitions' folders
 */
final case class PartitionsRecord(
    incarnation: String,
    table: TableIdentifier,
    to: String,
    moves: Seq[PartitionMove],
    read: Seq[FileRef])

/** How a run ended. The run was aborted if `commit` is false. */
final case class OutcomeRecord(incarnation: String, commit: Boolean, by: String)

/**
 * Reads and writes the journal's records as JSON. A torn record is treated like a missing one and
 * is read as None.
 */
object Records {

  /** The operation that undoes an OPTIMIZE. */
  val Restore: String = "RESTORE"

  private val mapper = new ObjectMapper()

  private val MaxShown = 100

  def write(record: PrepareRecord): Array[Byte] = bytes("prepare", record.incarnation) { node =>
    node.put("operation", record.operation).put("owner", record.owner)
      .put("host", record.process.host).put("pid", record.process.pid)
      .put("started", record.process.started)
      .put("began", record.began).put("lease", record.lease)
  }

  def write(record: RetireRecord): Array[Byte] = bytes("retire", record.incarnation) { node =>
    putFiles(node, "retire", record.retire)
    putFiles(node, "add", record.add)
    record.folders.foreach(node.withArray("folders").add)
    record.layout.foreach(LayoutRecord.put(node, _))
    val times = record.folders.flatMap(record.marked.get)
    if (times.nonEmpty && times.length == record.folders.length) {
      times.foreach(node.withArray("marked").add(_))
    }
  }

  def write(record: SwitchRecord): Array[Byte] = bytes("switch", record.incarnation) { node =>
    node.put("database", record.table.database.get).put("table", record.table.table)
      .put("to", record.to)
    putFiles(node, "read", record.read)
  }

  def write(record: PartitionsRecord): Array[Byte] =
    bytes("partitions", record.incarnation) { node =>
      node.put("database", record.table.database.get).put("table", record.table.table)
        .put("to", record.to)
      val moves = node.putArray("partitions")
      record.moves.foreach { move =>
        val one = moves.addObject()
        val values = one.putObject("values")
        move.spec.toSeq.sorted.foreach { case (name, value) => values.put(name, value) }
        one.put("from", move.from).put("to", move.to)
      }
      putFiles(node, "read", record.read)
    }

  def write(record: OutcomeRecord): Array[Byte] = bytes("outcome", record.incarnation) { node =>
    node.put("outcome", if (record.commit) "COMMIT" else "ABORT").put("by", record.by)
  }

  /**
   * `placed` lists the files whose modification times have changed since the RETIRE record was
   * written.
   */
  def writeDone(incarnation: String, placed: Seq[FileRef]): Array[Byte] =
    bytes("done", incarnation)(node => if (placed.nonEmpty) putFiles(node, "placed", placed))

  def prepare(text: Array[Byte]): Option[PrepareRecord] = parse(text, "prepare") { node =>
    PrepareRecord(
      incarnationOf(node),
      Printable(string(node, "operation").take(MaxShown)),
      string(node, "owner"),
      ProcessId(string(node, "host"), long(node, "pid"), long(node, "started")),
      long(node, "began"),
      long(node, "lease"))
  }

  def retire(text: Array[Byte]): Option[RetireRecord] = parse(text, "retire") { node =>
    val folders = required(node, "folders").elements().asScala.map(_.asText)
      .map(folder => if (folder.isEmpty) folder else inside(folder)).toVector
    val times = Option(node.get("marked")).toSeq.flatMap(_.elements().asScala.map(_.asLong))
    RetireRecord(
      incarnationOf(node),
      files(node, "retire"),
      files(node, "add"),
      folders,
      LayoutRecord.of(node),
      folders.zip(times).toMap)
  }

  def switch(text: Array[Byte]): Option[SwitchRecord] = parse(text, "switch") { node =>
    SwitchRecord(
      incarnationOf(node),
      tableOf(node),
      sibling(node),
      files(node, "read").map { file =>
        if (file.folder.nonEmpty) {
          throw new IllegalArgumentException(s"${file.path} is not directly in the table's folder")
        }
        file
      })
  }

  def partitions(text: Array[Byte]): Option[PartitionsRecord] =
    parse(text, "partitions") { node =>
      val moves = required(node, "partitions").elements().asScala.map { one =>
        val values = required(one, "values").fields().asScala
          .map(field => field.getKey -> field.getValue.asText).toMap
        val to = inside(string(one, "to"))
        if (TableFolder.isWhole(to)) {
          throw new IllegalArgumentException(s"$to is not relative to the new folder")
        }
        PartitionMove(values, inside(string(one, "from")), to)
      }.toVector
      PartitionsRecord(
        incarnationOf(node),
        tableOf(node),
        sibling(node),
        moves,
        files(node, "read"))
    }

  private def incarnationOf(node: JsonNode): String = {
    val id = string(node, "incarnation")
    if (!Incarnation.isId(id)) throw new IllegalArgumentException(s"$id is not an incarnation id")
    id
  }

  private def tableOf(node: JsonNode): TableIdentifier =
    TableIdentifier(string(node, "table"), Some(string(node, "database")))

  private def sibling(node: JsonNode): String = {
    val to = string(node, "to")
    if (!SiblingFolder.isOne(to)) {
      throw new IllegalArgumentException(s"$to is not the name of a folder that pyzorder creates")
    }
    to
  }

  def outcome(text: Array[Byte]): Option[OutcomeRecord] = parse(text, "outcome") { node =>
    val commit = string(node, "outcome") match {
      case "COMMIT" => true
      case "ABORT" => false
    }
    OutcomeRecord(incarnationOf(node), commit, string(node, "by"))
  }

  /** Whether the bytes are the DONE record of a run in the given incarnation of the table. */
  def isDone(text: Array[Byte], incarnation: String): Boolean =
    parse(text, "done")(incarnationOf).contains(incarnation)

  /** The files that were passed to `writeDone`; Nil if none were, or if the record is torn. */
  def placed(text: Array[Byte]): Seq[FileRef] =
    parse(text, "done")(node => if (node.has("placed")) files(node, "placed") else Nil)
      .getOrElse(Nil)

  /** The table's incarnation according to a record of any kind; None if the record is torn. */
  def incarnation(text: Array[Byte]): Option[String] =
    try Option(BoundedJson.tree(text)).map(incarnationOf)
    catch { case NonFatal(_) => None }

  /** Whether the bytes are a complete record of the given kind. */
  def whole(text: Array[Byte], kind: String): Boolean = parse(text, kind)(_ => ()).isDefined

  private def bytes(kind: String, incarnation: String)(fill: ObjectNode => Unit): Array[Byte] = {
    val node = mapper.createObjectNode()
    node.put("formatVersion", 1).put("record", kind).put("incarnation", incarnation)
    node.putArray("folders")
    if (kind != "retire") node.remove("folders")
    fill(node)
    mapper.writeValueAsBytes(node)
  }

  private def putFiles(node: ObjectNode, name: String, files: Seq[FileRef]): Unit = {
    val array = node.putArray(name)
    files.foreach(f =>
      array.addObject().put("path", f.path).put("size", f.size)
        .put("modificationTime", f.modificationTime))
  }

  private def files(node: JsonNode, name: String): Seq[FileRef] =
    required(node, name).elements().asScala.map(f =>
      fileOf(FileRef(inside(string(f, "path")), long(f, "size"), long(f, "modificationTime"))))
      .toVector

  /**
   * Rejects a file directly below the root of its store, such as `file:/x`. Its FileRef.folder
   * would be `file:`, which looks like a folder inside the table's folder.
   */
  private def fileOf(file: FileRef): FileRef =
    if (TableFolder.isWhole(file.path) && !TableFolder.isWhole(file.folder)) {
      throw new IllegalArgumentException(s"${file.path} is directly below the root of its store")
    } else file

  /**
   * Rejects a path that leads outside the table's folder, for example through `..`. Also rejects a
   * path with an unpaired surrogate, which is valid in JSON but occurs in no file name. pyzorder
   * never writes such paths.
   */
  private def inside(path: String): String =
    if (TableFolder.leaves(path) || !UTF_8.newEncoder().canEncode(path)) {
      throw new IllegalArgumentException(
        s"$path leads outside the table's folder or is not a valid file name")
    } else path

  private def parse[T](text: Array[Byte], kind: String)(read: JsonNode => T): Option[T] =
    try {
      val node = BoundedJson.tree(text)
      if (node == null || string(node, "record") != kind) None else Some(read(node))
    } catch {
      case NonFatal(_) => None
    }

  private def string(node: JsonNode, name: String): String = required(node, name).asText

  private def long(node: JsonNode, name: String): Long = required(node, name).asLong

  private def required(node: JsonNode, name: String): JsonNode =
    Option(node.get(name)).getOrElse(throw new IllegalArgumentException(s"it has no field $name"))
}
