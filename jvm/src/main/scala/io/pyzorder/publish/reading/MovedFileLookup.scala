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
   * retired, staged and own paths in this order can therefore miss the file only if the direction
   * of its move changes during the checks. For this reason, all paths are checked twice.
   *
   * @param missing          the planned path
   * @param size             the planned size in bytes; 0 if unknown
   * @param modificationTime the planned modification time; 0 if unknown. Several files may once
   *                         have had this name, so a retired file must have this time, unless the
   *                         store changes it when a file moves. A staged file may have another
   *                         time, because its name is unique and the table may be a copy
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
    def hasSize(status: FileStatus): Boolean = size <= 0 || status.getLen == size
    def once: Option[Path] = {
      val tables = tablesOf(fs, path, roots)
      val retired = tables.flatMap(retiredPaths(fs, _, path)).flatMap(FileSystems.status(fs, _))
        .filter(status => !MoveFile.keepsTime(fs) || modificationTime <= 0 || isPlanned(status))
      val staged = tables.flatMap(stagedPaths(fs, _, path)).flatMap(FileSystems.status(fs, _))
      (retired ++ staged).filter(hasSize).sortBy(!isPlanned(_)).headOption.map(_.getPath)
        .orElse(if (FileSystems.exists(fs, path)) Some(path) else None)
    }
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

  /** The paths that the file would have if a run had retired it, starting with the latest run. */
  private def retiredPaths(fs: FileSystem, table: TableFolder, path: Path): Seq[Path] =
    runs(fs, new Path(table.zorder, "_retired")).map(table.retiredPath(_, table.relativize(path)))

  /** The paths that the file would have if a run had not moved it into place yet. */
  private def stagedPaths(fs: FileSystem, table: TableFolder, path: Path): Seq[Path] =
    runs(fs, new Path(table.zorder, "_staging")).map(table.stagedPath(_, table.relativize(path)))

  private def runs(fs: FileSystem, folder: Path): Seq[Long] =
    FileSystems.list(fs, folder).flatMap(entry => RunNumber.ofFolder(entry.getPath.getName))
      .sorted.reverse
}
