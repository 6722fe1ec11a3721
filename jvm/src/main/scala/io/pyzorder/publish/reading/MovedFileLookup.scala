package io.pyzorder.publish.reading

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

import io.pyzorder.storage.{FileSystems, MoveFile, RunNumber, TableFolder}

/** Finds data files that an OPTIMIZE has moved since a scan was planned. */
object MovedFileLookup {

  /**
   * Finds a planned data file that is missing from its own path. It may be retired, still staged,
   * or back in place.
   *
   * An old file moves to its retired path and possibly back. A new file moves from its staged path
   * to its own path. A move creates the new name before it removes the old one. Checking the
   * retired, staged and own paths in this order can therefore miss the file only if its direction
   * changes during the checks. For this reason, all paths are checked twice.
   *
   * @param missing          the planned path
   * @param size             the planned size in bytes; 0 if unknown
   * @param modificationTime the planned modification time; 0 if unknown. Several retired files may
   *                         once have had the same name. The time tells them apart, also from the
   *                         missing file. On stores where a move changes it, it is only preferred
   * @param roots            the root paths of the file's relation
   */
  def locate(
      hadoopConf: Configuration,
      missing: Path,
      size: Long = 0L,
      modificationTime: Long = 0L,
      roots: Seq[Path] = Nil): Option[Path] = {
    val fs = missing.getFileSystem(hadoopConf)
    val path = fs.makeQualified(missing)
    def isPlanned(status: FileStatus): Boolean = status.getModificationTime == modificationTime
    def once: Option[Path] =
      tablesOf(fs, path, roots).flatMap(places(fs, _, path)).flatMap(FileSystems.status(fs, _))
        .filter(size <= 0 || _.getLen == size)
        .filter(status => !MoveFile.keepsTime(fs) || modificationTime <= 0 || isPlanned(status))
        .sortBy(!isPlanned(_))
        .headOption.map(_.getPath)
        .orElse(if (FileSystems.exists(fs, path)) Some(path) else None)
    once.orElse(once)
  }

  /**
   * The folders with a `_zorder` that may be the folder of the file's table, nearest first. The
   * first candidates are the file's own folder and its ancestors up to the relation's root path.
   * Further candidates are the ancestors of the file's folder and of the root path, up to the first
   * folder whose name does not have the form `name=value`. A `_zorder` further up is not trusted,
   * because anyone who can write there could substitute their own rows for a missing file.
   */
  private def tablesOf(fs: FileSystem, path: Path, roots: Seq[Path]): Seq[TableFolder] = {
    val above = Iterator.iterate(path.getParent)(_.getParent).takeWhile(_ != null).toSeq
    val around = roots.filter(TableFolder.isAtOrBelow(path, _)) :+ path.getParent
    val candidates = around.flatMap(TableFolder.upwards).toSet
    above.filter(folder => candidates(folder) || around.exists(TableFolder.isAtOrBelow(folder, _)))
      .map(new TableFolder(_)).filter(table => FileSystems.exists(fs, table.zorder))
  }

  /**
   * The paths that pyzorder may have moved the file to: first the retired paths, then the staged
   * paths, each starting with the latest run.
   */
  private def places(fs: FileSystem, table: TableFolder, path: Path): Seq[Path] = {
    val name = table.relativize(path)
    runs(fs, new Path(table.zorder, "_retired")).map(table.retiredPath(_, name)) ++
      runs(fs, new Path(table.zorder, "_staging")).map(table.stagedPath(_, name))
  }

  private def runs(fs: FileSystem, folder: Path): Seq[Long] =
    FileSystems.list(fs, folder).flatMap(entry => RunNumber.ofFolder(entry.getPath.getName))
      .sorted.reverse
}
