package io.pyzorder.publish.reading

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

import io.pyzorder.storage.{FileSystems, RunNumber, TableFolder}

/** Finds data files that an OPTIMIZE has moved since a scan was planned. */
object MovedFileLookup {

  /**
   * Where a planned data file that is not at its place lies now: retired, still staged, or back.
   *
   * A retired file goes to its retired place and perhaps back, a new file from its staged place in.
   * A move makes the second name before it takes the first away, so that looking at retired, staged
   * and own place in this order can miss the file only while it turns round; hence twice.
   *
   * @param missing          the planned path
   * @param size             its planned size in bytes; 0: not known
   * @param modificationTime its planned modification time; 0: not known. Only to choose between
   *                         several retired files that once had the same name
   */
  def locate(
      hadoopConf: Configuration,
      missing: Path,
      size: Long = 0L,
      modificationTime: Long = 0L): Option[Path] = {
    val fs = missing.getFileSystem(hadoopConf)
    val path = fs.makeQualified(missing)
    def once: Option[Path] =
      tablesAbove(fs, path).flatMap(places(fs, _, path)).flatMap(FileSystems.status(fs, _))
        .filter(size <= 0 || _.getLen == size)
        .sortBy(status => status.getModificationTime != modificationTime)
        .headOption.map(_.getPath)
        .orElse(if (FileSystems.exists(fs, path)) Some(path) else None)
    once.orElse(once)
  }

  /** Folders above the file that have a `_zorder`, the nearest first. */
  private def tablesAbove(fs: FileSystem, path: Path): Seq[TableFolder] =
    Iterator.iterate(path.getParent)(_.getParent).takeWhile(_ != null).toSeq
      .map(new TableFolder(_)).filter(table => FileSystems.exists(fs, table.zorder))

  /** The places pyzorder may have moved the file to, those of later runs first. */
  private def places(fs: FileSystem, table: TableFolder, path: Path): Seq[Path] = {
    val name = table.relativize(path)
    runs(fs, new Path(table.zorder, "_retired")).map(table.retiredPath(_, name)) ++
      runs(fs, new Path(table.zorder, "_staging")).map(table.stagedPath(_, name))
  }

  private def runs(fs: FileSystem, folder: Path): Seq[Long] =
    FileSystems.list(fs, folder).flatMap(entry => RunNumber.ofFolder(entry.getPath.getName))
      .sorted.reverse
}
