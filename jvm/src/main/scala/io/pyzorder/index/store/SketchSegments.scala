package io.pyzorder.index.store

import java.util.UUID
import java.util.zip.CRC32

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.pyzorder.common.ReadFailure
import io.pyzorder.index.model.{FileEntry, FileSketches, IndexedColumn}
import io.pyzorder.index.sketch.{ColumnSketch, HashColumn, ListColumn, NewSketches}
import io.pyzorder.index.sketch.{SegmentWriter, SketchChoice}
import io.pyzorder.storage.{MetadataFiles, TableFolder}

/**
 * Stores the sketches of a new snapshot's files. A segment of the previous snapshot is kept if the
 * new snapshot has all of the segment's columns and files. From all other segments, only the
 * sketches that are still needed are copied to new segments, which also contain the sketches of new
 * files. A sketch therefore never outlives its file's entry or its column. If there are too many
 * segments, small ones are merged.
 *
 * @param before  the segments of the previous snapshot
 * @param columns the columns of the new snapshot
 * @param warn    called with a segment's name and the failure if the segment cannot be read
 */
private[store] final class SketchSegments(
    hadoopConf: Configuration,
    folder: TableFolder,
    before: Seq[SegmentRef],
    columns: Seq[IndexedColumn],
    warn: (String, Throwable) => Unit) {
  import SketchSegments._

  private val fileSystem = folder.index.getFileSystem(hadoopConf)

  private val named = columns.map(column => column.name -> column).toMap

  /**
   * Stores the sketches. Returns the entries, which now refer to their stored sketches, and the
   * segments that contain these sketches.
   *
   * @param version the version of the new snapshot
   */
  def store(version: Long, entries: Seq[FileEntry]): (Seq[FileEntry], Seq[SegmentRef]) = {
    val users = mutable.HashMap.empty[String, mutable.ArrayBuffer[(FileEntry, Int)]]
    entries.foreach(entry =>
      entry.sketches match {
        case FileSketches.Stored(segment, number) =>
          users.getOrElseUpdate(segment, mutable.ArrayBuffer.empty) += entry -> number
        case _ =>
      })
    val used = before.filter(ref => users.contains(ref.file)).sortBy(_.length)
    val (clean, partly) = used.partition(ref => isClean(ref, users(ref.file).map(_._2).toSet))
    val fresh = newFiles(entries, isFirst = used.isEmpty)
    val isTooMany = clean.length + (if (fresh.isEmpty && partly.isEmpty) 0 else 1) > FewSegments
    val again = within(partly, 2L * SegmentRef.MaxBytes) ++
      (if (isTooMany) within(clean, SegmentRef.MaxBytes.toLong) else Nil)
    val kept = clean.filterNot(again.contains)
    val parts = partsOf(fresh ++ again.flatMap(ref => stored(ref, users(ref.file).toSeq)))
    val written =
      parts.take(SegmentRef.MaxSegments - kept.length).flatMap(write(version, _))
    val names = kept.map(_.file).toSet
    val places = (
      for {
        (ref, files) <- written; (file, i) <- files.zipWithIndex
      } yield file.path -> FileSketches.Stored(ref.file, i)).toMap
    val placed = entries.map { entry =>
      entry.sketches match {
        case FileSketches.Missing => entry
        case FileSketches.Stored(segment, _) if names(segment) => entry
        case _ => entry.copy(sketches = places.getOrElse(entry.path, FileSketches.Missing))
      }
    }
    (placed, kept ++ written.map(_._1))
  }

  /** Deletes segments that `store` wrote for a snapshot that was not published. */
  def delete(segments: Seq[SegmentRef]): Unit =
    segments.filterNot(before.contains).foreach { ref =>
      val path = new Path(folder.index, ref.file)
      fileSystem.delete(path, false)
    }

  private def isClean(ref: SegmentRef, numbers: Set[Int]): Boolean =
    reading(ref)(_.directory).exists(directory =>
      directory.columns.forall(c => columns.contains(c.column)) &&
        (0 until directory.numFiles).forall(numbers))

  /** Reads the sketches that are still needed from a segment. */
  private def stored(ref: SegmentRef, users: Seq[(FileEntry, Int)]): Seq[Sketched] =
    reading(ref) { reader =>
      val directory = reader.directory
      val live = directory.columns.filter(c => columns.contains(c.column)).map {
        case own: HashColumn =>
          val blocks = own.checksums.indices.map(reader.block(own, _))
          own.column -> ((file: Int, most: Long) => own.hashesOf(file, blocks, most))
        case own: ListColumn =>
          val block = reader.lists(own)
          own.column -> ((file: Int, most: Long) => own.listOf(file, block, most))
      }
      users.map { case (entry, number) =>
        Sketched(
          entry.path,
          live.flatMap { case (column, read) => read(number, entry.size).map(column -> _) }.toMap)
      }
    }.getOrElse(Nil).filter(_.columns.nonEmpty)

  private def reading[T](ref: SegmentRef)(read: SegmentReader => T): Option[T] =
    try Some(read(new SegmentReader(fileSystem, folder, ref)))
    catch {
      case ReadFailure(failure) =>
        warn(ref.file, failure)
        None
    }

  /**
   * The sketches of new files, truncated to fit their budgets. A file gets a sketch of a column
   * only if the column's bounds in the file are valid for all scans. In this case, all scans read
   * the same values.
   */
  private def newFiles(entries: Seq[FileEntry], isFirst: Boolean): Seq[Sketched] = {
    val files = entries.collect { case entry if entry.sketches.isInstanceOf[NewSketches] => entry }
    lazy val present = before.flatMap(ref => reading(ref)(_.directory)).flatMap(_.columns)
      .map(_.column).toSet
    val columnsOf = files.flatMap(_.sketches.asInstanceOf[NewSketches].byColumn.keys).distinct
      .flatMap(named.get)
    val share = NewParts * PartBytes / math.max(1L, files.length.toLong * columnsOf.length)
    val byColumn = columnsOf.map { column =>
      column -> files.flatMap { entry =>
        val sketches = entry.sketches.asInstanceOf[NewSketches]
        val most = math.min((entry.size * sketches.budget).toLong, share)
        for {
          statistics <- entry.statistics.get(column.name)
          if statistics.bounds.isDefined && !statistics.settingsDependent
          sketch <- sketches.byColumn.get(column.name).flatMap(_.limitedTo(most))
        } yield (entry.path, statistics, sketch)
      }
    }.filter { case (column, known) =>
      SketchChoice.pays(column.dataType, known.map { case (_, s, sketch) => (s, sketch) })
        .getOrElse(isFirst || present(column))
    }
    val sketches = for {
      (column, known) <- byColumn; (path, _, sketch) <- known
    } yield path -> (column -> sketch)
    val grouped = sketches.groupBy(_._1)
    files.flatMap(entry =>
      grouped.get(entry.path).map(found => Sketched(entry.path, found.map(_._2).toMap)))
  }

  private def write(version: Long, files: Seq[Sketched]): Option[(SegmentRef, Seq[Sketched])] = {
    val own = columns.filter(column => files.exists(_.columns.contains(column)))
    val encoded = SegmentWriter.encode(
      files.length, own.map(column => column -> files.map(_.columns.get(column)).toIndexedSeq))
    if (encoded.bytes.length > SegmentRef.MaxBytes) None
    else {
      val crc = new CRC32()
      crc.update(encoded.bytes, encoded.directory, encoded.bytes.length - encoded.directory)
      val ref = SegmentRef(
        s"_sketch-$version-${UUID.randomUUID()}", encoded.bytes.length.toLong,
        encoded.directory.toLong, crc.getValue)
      val path = new Path(folder.index, ref.file)
      SnapshotFiles.write(fileSystem, path, encoded.bytes)
      MetadataFiles.share(hadoopConf, path)
      Some((ref, files))
    }
  }
}

private[store] object SketchSegments {

  /**
   * The names of the columns for which these entries have new sketches; None if there are none. The
   * names are needed if OPTIMIZE moves a table to a new folder, which has no earlier snapshot to
   * take them from.
   */
  def columnsIn(entries: Seq[FileEntry]): Option[Seq[String]] =
    Some(entries.map(_.sketches).collect { case added: NewSketches => added.byColumn.keys.toSeq }
        .flatten.distinct).filter(_.nonEmpty)

  /** The sketches of one file, by column. */
  private final case class Sketched(path: String, columns: Map[IndexedColumn, ColumnSketch]) {
    def bytes: Long = columns.values.map(_.size).sum
  }

  /** Small segments are merged if there are more segments than this. */
  private val FewSegments = 16

  /**
   * The approximate maximum size of the encoded hashes in one segment. It leaves room for the
   * directory.
   */
  private val PartBytes = SegmentRef.MaxBytes / 2L

  /** The maximum number of segments for new sketches. */
  private val NewParts = 8

  /** The longest prefix of `segments` with a total size of at most `most` bytes. */
  private def within(segments: Seq[SegmentRef], most: Long): Seq[SegmentRef] =
    segments.zip(segments.scanLeft(0L)(_ + _.length).tail).takeWhile(_._2 <= most).map(_._1)

  /** Divides files among segments. */
  private def partsOf(files: Seq[Sketched]): Seq[Seq[Sketched]] =
    if (files.isEmpty) Nil
    else {
      val ends = files.scanLeft(0L)(_ + _.bytes).tail
      files.zip(ends).groupBy { case (_, end) => end / PartBytes }.toSeq.sortBy(_._1)
        .map(_._2.map(_._1))
    }
}
