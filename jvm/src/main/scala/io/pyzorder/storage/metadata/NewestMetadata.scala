package io.pyzorder.storage.metadata

import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.pyzorder.Requests
import org.slf4j.LoggerFactory

import io.pyzorder.common.BoundedJson
import io.pyzorder.storage.{FileSystems, S3Requests, S3Status, TableFolder}

/**
 * The newest pointer of an index and the records of the last run, as found by an earlier listing.
 * On S3, a query can find out with three requests, none of which lists anything, whether they still
 * are the newest: there is no pointer with the next version, there is no record PREPARE of the next
 * run, and after that, the known pointer still exists.
 *
 * This is as good as a listing sent together with the first two requests, for these reasons:
 *  - Suppose that by then a version greater than the known version `v` had been published. A writer
 *    publishes a version only if the one before exists, and takes it back if it turns out that the
 *    one before is gone (see IndexPublisher), so `v + 1` had been created as well. It was not
 *    found, so it had been deleted. Old versions are deleted in ascending order (see OldSnapshots),
 *    so `v` had been deleted before, and the third request does not find it. If the index was
 *    dropped and created again, the pointer with this version has another tag, because every
 *    pointer contains a unique name.
 *  - Runs are numbered in the same way, PREPARE is the first record of a run, and records are
 *    deleted only together with the index, when the table is overwritten or dropped.
 *
 * The numbers may nevertheless have a gap: somebody may plant files, and a writer may build on a
 * version just before that version is taken back. Later versions may then go unnoticed. Even so, no
 * entry applies to a file whose size or time differs, and at `maxStaleness` above 0s, the known
 * list of files is no older than allowed.
 *
 * The known files come from this process's last listing of the table or, in a new process, from the
 * file `_newest.json` beside the pointers. Writers replace that file, but nothing depends on it: if
 * it is missing or outdated, the folders are listed.
 *
 * @param pointer the pointer with the greatest version
 * @param records the records of the last run, which is finished; empty if there was no run
 */
final class NewestMetadata private[metadata] (
    folder: TableFolder,
    pointer: S3Status,
    records: Seq[FileStatus]) {

  def files: Seq[FileStatus] = pointer +: records

  private def version: Long = MetadataNames.versionOf(pointer.getPath.getName).get

  private def run: Long =
    records.headOption.flatMap(r => MetadataNames.recordOf(r.getPath.getName)).fold(0L)(_._1)

  /** Whether there is still nothing newer. */
  private def isNewest(requests: S3Requests): Boolean = {
    val next = Seq(
      MetadataNames.record(folder, run + 1, "prepare"), MetadataNames.pointer(folder, version + 1))
    Requests.inParallel(requests.fs, next)(requests.tagOf).forall(_.isEmpty) &&
    requests.tagOf(pointer.getPath).contains(pointer.tag)
  }

  private def toJson: String = {
    val json = NewestMetadata.mapper.createObjectNode()
    json.put("formatVersion", NewestMetadata.FormatVersion)
    def put(file: FileStatus, item: ObjectNode): Unit = {
      item.put("name", file.getPath.getName)
      item.put("size", file.getLen)
      item.put("modificationTime", file.getModificationTime)
    }
    val item = json.putObject("pointer")
    put(pointer, item)
    item.put("tag", pointer.tag)
    val list = json.putArray("records")
    records.foreach(put(_, list.addObject()))
    json.toString
  }
}

object NewestMetadata {

  private val log = LoggerFactory.getLogger(getClass)

  private val mapper = new ObjectMapper()

  private val FormatVersion = 1

  /** The maximum length of the file in bytes. */
  private val MaxBytes = 64 << 10

  /** Enough for most tables. A page also contains some of the other files in `_zorder`. */
  private val PageSize = 200

  private val remembered: Cache[TableFolder, NewestMetadata] =
    CacheBuilder.newBuilder().maximumSize(10000).build[TableFolder, NewestMetadata]()

  /** The file that tells other processes which metadata is the newest. */
  def fileOf(folder: TableFolder): Path = new Path(folder.index, "_newest.json")

  /**
   * All files in the table's `_index` and `_journal` folders. The newest of them are remembered for
   * later calls of `known`.
   */
  private[metadata] def listed(requests: S3Requests, folder: TableFolder): Seq[FileStatus] = {
    val names = Seq(folder.index, folder.journal).map(_.getName).sorted
    val files =
      requests.rangeBelow(folder.zorder, names.head, s"${names.last}/\uffff", PageSize)
    among(folder, files) match {
      case Some(newest) => remembered.put(folder, newest)
      case None => remembered.invalidate(folder)
    }
    files
  }

  /** The newest files, if they are known and still are the newest. */
  private[metadata] def known(
      requests: S3Requests,
      folder: TableFolder): Option[NewestMetadata] = {
    val mine = Option(remembered.getIfPresent(folder))
    val found = mine.orElse(read(requests, folder)).filter(_.isNewest(requests))
    if (mine.isEmpty) found.foreach(remembered.put(folder, _))
    found
  }

  /**
   * Lists the table's metadata and writes `_newest.json` for other processes. Does nothing if the
   * store is not S3, or if there is no index or an unfinished run. Failures are only logged.
   */
  def write(hadoopConf: Configuration, folder: TableFolder): Unit =
    try
      for {
        requests <- S3Requests.of(folder.zorder.getFileSystem(hadoopConf))
        newest <- among(folder, listed(requests, folder))
      } {
        val out = requests.fs.createFile(fileOf(folder)).overwrite(true).build()
        try out.write(newest.toJson.getBytes(UTF_8))
        finally out.close()
      }
    catch {
      case NonFatal(failure) =>
        log.info(s"${fileOf(folder)} could not be written: ${failure.getMessage}")
    }

  /** The newest of these files; None if there is no pointer or the last run is unfinished. */
  private def among(folder: TableFolder, files: Seq[FileStatus]): Option[NewestMetadata] = {
    val pointers = files.collect {
      case file: S3Status if file.getPath.getParent == folder.index =>
        MetadataNames.versionOf(file.getPath.getName).map(_ -> file)
    }.flatten
    val records = files.filter(_.getPath.getParent == folder.journal).flatMap(file =>
      MetadataNames.recordOf(file.getPath.getName).map { case (run, kind) => (run, kind, file) })
    val last = records.filter(_._1 == records.map(_._1).reduceOption(_ max _).getOrElse(0L))
    if (pointers.isEmpty || last.nonEmpty && !last.exists(_._2 == "done")) None
    else Some(new NewestMetadata(
        new TableFolder(folder.root), pointers.maxBy(_._1)._2, last.map(_._3)))
  }

  private def read(requests: S3Requests, folder: TableFolder): Option[NewestMetadata] =
    if (requests.tagOf(fileOf(folder)).isEmpty) None // S3A would list before it says so
    else parse(folder, FileSystems.readFully(requests.fs, fileOf(folder), MaxBytes))

  /** Parses `_newest.json`. Returns None if pyzorder did not write it. */
  private def parse(folder: TableFolder, text: Array[Byte]): Option[NewestMetadata] =
    try {
      val json = BoundedJson.tree(text)
      def status(item: JsonNode, parent: Path): S3Status = {
        val name = item.get("name").asText
        if (name.contains('/')) throw new IllegalArgumentException(s"$name is not a file's name")
        new S3Status(
          item.get("size").asLong, item.get("modificationTime").asLong, new Path(parent, name),
          item.path("tag").asText)
      }
      if (json.get("formatVersion").asInt != FormatVersion) None
      else among(
        folder,
        status(json.get("pointer"), folder.index) +:
          json.get("records").elements().asScala.map(status(_, folder.journal)).toList)
    } catch { case NonFatal(_) => None }
}
