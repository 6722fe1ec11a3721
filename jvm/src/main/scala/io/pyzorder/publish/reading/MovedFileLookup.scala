package io.pyzorder.publish.reading

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

import io.pyzorder.storage.{FileSystems, MoveFile, RunNumber, TableFolder}

/** Finds data files that an OPTIMIZE has moved since a scan was planned. */
object MovedFileLookup {

  /**
   * Finds a planned data file that is missing from its own path. The file may be retired (moved to
   * `_zorder/_retired/`), still staged (in `_zorder/_staging/`), or back in place.
   *
   * An old file moves to its retired path and possibly back. A new file moves from its staged path
   * to its own path. A move creates the new name before it removes the old one. Checking the
   * retired, staged and own paths in this order can therefore miss the file only if the direction
   * of its move changes during the checks. For this reason, all paths are checked twice.
   *
   * @param missing          the planned path
   * @param size             the planned size in bytes; 0 if unknown
   * @param modificationTime the planned modification time; 0 if unknown. Several files may have
   *                         had this name over time, so a retired file must have this modification
   *                         time, unless the store changes it when a file moves. A staged file may
   *                         have a different time, because its name is unique and the table may be
   *                         a copy
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
    val planned = new Planned(fs, size, modificationTime)
    def once: Option[Path] = {
      val tables = tablesOf(fs, path, roots)
      val staged = tables.flatMap(stagedPaths(fs, _, path)).flatMap(FileSystems.status(fs, _))
      (retired(fs, tables, path, planned) ++ staged.filter(planned.hasSize))
        .sortBy(!planned.hasTime(_)).headOption.map(_.getPath)
        .orElse(FileSystems.status(fs, path).filter(planned.fits).map(_.getPath))
    }
    once.orElse(once)
  }

  /**
   * The retired path of a planned data file if another file now has its name. None if the file is
   * still in place, or if no OPTIMIZE has retired it. Also None on stores where a move changes the
   * modification time, because an older file may have had the same name and size.
   *
   * The parameters are those of `locate`.
   */
  def replaced(
      hadoopConf: Configuration,
      name: Path,
      size: Long,
      modificationTime: Long,
      roots: Seq[Path]): Option[Path] = {
    val fs = name.getFileSystem(hadoopConf)
    val path = fs.makeQualified(name)
    val planned = new Planned(fs, size, modificationTime)
    if (size <= 0 || modificationTime <= 0 || !MoveFile.keepsTime(fs)) None
    else {
      FileSystems.status(fs, path).filterNot(now => planned.hasSize(now) && planned.hasTime(now))
        .flatMap(_ => retired(fs, tablesOf(fs, path, roots), path, planned).headOption)
        .map(_.getPath)
    }
  }

  private def retired(
      fs: FileSystem,
      tables: Seq[TableFolder],
      path: Path,
      planned: Planned): Seq[FileStatus] =
    tables.flatMap(retiredPaths(fs, _, path)).flatMap(FileSystems.status(fs, _))
      .filter(planned.fits)

  /** The size and modification time of a planned file; 0 if unknown. */
  private final class Planned(fs: FileSystem, size: Long, modificationTime: Long) {

    def hasSize(status: FileStatus): Boolean = size <= 0 || status.getLen == size

    def hasTime(status: FileStatus): Boolean = status.getModificationTime == modificationTime

    /** Whether `status` could be the status of the planned file after a move. */
    def fits(status: FileStatus): Boolean =
      hasSize(status) && (modificationTime <= 0 || !MoveFile.keepsTime(fs) || hasTime(status))
  }

  /**
   * The folders that contain a `_zorder` and may be the folder of the file's table, nearest first.
   * The first candidates are the file's own folder and its ancestors up to the relation's root
   * path. Further candidates are the ancestors of the file's folder and of the root path, up to the
   * first folder whose name does not have the form `name=value`. A `_zorder` further up is not
   * trusted, because anyone who can write there could substitute their own rows for a missing file.
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

  /** The paths that the file would have if a run had staged it but not moved it into place yet. */
  private def stagedPaths(fs: FileSystem, table: TableFolder, path: Path): Seq[Path] =
    runs(fs, new Path(table.zorder, "_staging")).map(table.stagedPath(_, table.relativize(path)))

  private def runs(fs: FileSystem, folder: Path): Seq[Long] =
    FileSystems.list(fs, folder).flatMap(entry => RunNumber.ofFolder(entry.getPath.getName))
      .sorted.reverse
}
