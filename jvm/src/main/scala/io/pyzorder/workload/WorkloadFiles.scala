package io.pyzorder.workload

import java.io.FileNotFoundException
import java.time.LocalDate
import java.util.UUID

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

import io.pyzorder.common.{BoundedJson, Printable, RecordedTime}
import io.pyzorder.storage.{CreateIfAbsent, FileSystems, MetadataFiles, TableFolder}

/**
 * The files in `_zorder/_workload`, which sql/FORMAT.md describes. Each application has a file of
 * its own, so several applications can record at the same time. The file is immutable: to replace
 * it, the application creates a file with the next number, and then deletes the old one. If the
 * application is killed in between, readers use the file with the greatest number.
 */
private[pyzorder] object WorkloadFiles {

  private val FormatVersion = 3
  private val Name = "_([0-9a-f]{32})\\.([0-9]{1,9})\\.json".r

  /** The maximum length of a file in bytes. Longer files are ignored. */
  private val MaxBytes = 4 << 20

  /** The maximum number of characters of filters, keys and examples in a file. */
  private val MaxText = 1 << 20

  /** The number of applications whose files are kept. */
  private val MaxFiles = 64

  /** The maximum number of scans on one day; their sum must not overflow. */
  private val MaxScans = 1L << 48

  private val mapper = new ObjectMapper()

  private final case class Recorded(application: String, number: Int, path: Path, time: Long)

  /** A new name for an application. */
  def newApplication(): String = UUID.randomUUID().toString.replace("-", "")

  def path(folder: TableFolder, application: String, number: Int): Path =
    new Path(folder.workload, s"_$application.$number.json")

  /** What all applications have written. */
  def read(hadoopConf: Configuration, folder: TableFolder): WorkloadCounts = {
    val fs = folder.workload.getFileSystem(hadoopConf)
    newest(fs, folder).take(MaxFiles).flatMap { file =>
      contents(fs, file.path).orElse( // if not, its application has probably just replaced it
        contents(fs, path(folder, file.application, file.number + 1)))
    }.flatMap(parse).foldLeft(WorkloadCounts.none)(_ ++ _)
  }

  private def contents(fs: FileSystem, path: Path): Option[Array[Byte]] =
    try Some(FileSystems.readFully(fs, path, MaxBytes))
    catch { case _: FileNotFoundException => None }

  /**
   * Creates the file with this number, and deletes the previous one. The application's first file
   * replaces the oldest files of other applications if there are too many.
   */
  def write(
      hadoopConf: Configuration,
      folder: TableFolder,
      application: String,
      number: Int,
      counts: WorkloadCounts): Unit = {
    MetadataFiles.makeFolder(hadoopConf, folder.workload)
    val made = path(folder, application, number)
    CreateIfAbsent.of(hadoopConf, made).create(made, bytes(counts))
    if (number > 1) MetadataFiles.delete(hadoopConf, path(folder, application, number - 1))
    else {
      val fs = folder.workload.getFileSystem(hadoopConf)
      newest(fs, folder).drop(MaxFiles).foreach(old => MetadataFiles.delete(hadoopConf, old.path))
    }
  }

  /** Deletes everything that has been recorded. */
  def clear(hadoopConf: Configuration, folder: TableFolder): Unit = {
    val fs = folder.workload.getFileSystem(hadoopConf)
    all(fs, folder).foreach(file => MetadataFiles.delete(hadoopConf, file.path))
    MetadataFiles.removeEmpty(hadoopConf, folder.workload)
  }

  /** The file with the greatest number of each application, newest first. */
  private def newest(fs: FileSystem, folder: TableFolder): Seq[Recorded] =
    all(fs, folder).groupBy(_.application).values.map(_.maxBy(_.number)).toSeq.sortBy(-_.time)

  private def all(fs: FileSystem, folder: TableFolder): Seq[Recorded] =
    FileSystems.list(fs, folder.workload).flatMap { status =>
      status.getPath.getName match {
        case Name(application, number) if status.isFile =>
          Some(Recorded(application, number.toInt, status.getPath, status.getModificationTime))
        case _ => None
      }
    }

  private def bytes(counts: WorkloadCounts): Array[Byte] = {
    val node = mapper.createObjectNode().put("formatVersion", FormatVersion)
    val shapes = node.putArray("shapes")
    var room = MaxText
    counts.shapes.toSeq.sortBy { case (_, count) => -count.last }.foreach { case (shape, count) =>
      room -= (shape.filters ++ shape.joinKeys ++ count.examples.flatten).map(_.length).sum
      if (room >= 0) {
        val item = shapes.addObject()
        put(item.putArray("filters"), shape.filters)
        put(item.putArray("joinKeys"), shape.joinKeys)
        put(item.putObject("days"), count.days)
        item.put("last", count.last)
        val examples = item.putArray("examples")
        count.examples.foreach(example => put(examples.addArray(), example))
      }
    }
    mapper.writeValueAsBytes(node)
  }

  private def put(node: ObjectNode, days: Map[Long, Long]): Unit =
    days.toSeq.sorted.foreach { case (day, scans) =>
      node.put(LocalDate.ofEpochDay(day).toString, scans)
    }

  private def put(list: ArrayNode, texts: Seq[String]): Unit = texts.foreach(list.add(_))

  /**
   * Parses a file. Anyone with write access to the table's folder can forge it, so a file that
   * exceeds a limit or is malformed counts as empty. The texts in it are only data: they must not
   * be executed without a check.
   */
  private def parse(text: Array[Byte]): Option[WorkloadCounts] =
    try {
      val node = BoundedJson.tree(text)
      require(node.get("formatVersion").asInt == FormatVersion)
      val shapes = items(node.get("shapes"), WorkloadCounts.MaxShapes).map { item =>
        val shape = Shape(texts(item.get("filters")), texts(item.get("joinKeys")))
        val examples =
          items(item.get("examples"), ShapeCount.MaxExamples).map(texts(_, 2 * Shape.MaxParts))
        require(examples.forall(_.length == shape.filters.length + shape.joinKeys.length))
        val last = item.get("last").asLong
        require(RecordedTime.isValid(last))
        shape -> ShapeCount(days(item.get("days")), last, examples)
      }
      // A clock may have been wrong, but later days must not displace the current ones.
      val tomorrow = WorkloadCounts.dayOf(System.currentTimeMillis()) + 1
      Some(WorkloadCounts(shapes.toMap).ofDays(_ <= tomorrow))
    } catch { case NonFatal(_) => None }

  private def days(node: JsonNode): Map[Long, Long] = {
    require(node.isObject && node.size > 0 && node.size <= WorkloadCounts.MaxDays)
    node.fields().asScala.map { day =>
      val scans = day.getValue.asLong
      val number = LocalDate.parse(day.getKey).toEpochDay
      require(scans > 0 && scans < MaxScans && RecordedTime.isValidDay(number))
      number -> scans
    }.toMap
  }

  private def items(node: JsonNode, atMost: Int): Seq[JsonNode] = {
    require(node.isArray && node.size <= atMost)
    node.elements().asScala.toVector
  }

  private def texts(node: JsonNode, atMost: Int = Shape.MaxParts): Seq[String] =
    items(node, atMost).map { item =>
      require(item.isTextual && item.asText.length <= Shape.MaxLength)
      Printable(item.asText)
    }
}
