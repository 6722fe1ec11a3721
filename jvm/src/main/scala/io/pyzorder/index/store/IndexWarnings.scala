package io.pyzorder.index.store

import java.util.concurrent.ConcurrentHashMap

import org.slf4j.LoggerFactory

import io.pyzorder.common.{Printable, ZOrderErrors}
import io.pyzorder.storage.TableFolder

/** The warnings about indexes that cannot be used. Each is logged only once. */
private[pyzorder] object IndexWarnings {

  private val log = LoggerFactory.getLogger(getClass)

  /**
   * The maximum length of a failure's message in the log. A message may quote large parts of the
   * index.
   */
  private val MessageLength = 300

  private val warned = ConcurrentHashMap.newKeySet[String]()

  /** Warns that a snapshot cannot be used. */
  def unusable(ref: SnapshotRef, failure: Throwable): Unit =
    unusable(ref.folder, ref.dataFile.toString, failure)

  /** @param what the path of the file that cannot be used, and possibly a part of it */
  def unusable(folder: TableFolder, what: String, failure: Throwable): Unit =
    if (warned.add(what + String.valueOf(failure.getMessage).take(MessageLength))) {
      log.warn(Printable(ZOrderErrors.withoutPassword(
            s"The skipping index of $folder cannot be used, so all files are read: $what: " +
              s"${String.valueOf(failure.getMessage).take(MessageLength)}. To rebuild it, run " +
              s"REFRESH SKIPPING INDEX ON '$folder' or, without pyzorder's jar, " +
              "pyzorder.fallback.create_index.")))
    }

  /**
   * Warns that an entry names no file of the table. Warns only once per snapshot, because a forged
   * snapshot may contain any number of long paths.
   */
  def stray(ref: SnapshotRef, path: String): Unit =
    if (warned.add(s"${ref.folder} ${ref.version}")) {
      log.warn(
        s"The skipping index of ${ref.folder} has an entry for " +
          s"${Printable(path.take(MessageLength))}, which is not a file of the table. Such " +
          s"entries are ignored. To remove them, run REFRESH SKIPPING INDEX ON '${ref.folder}'.")
    }

  /** Warns that a segment of sketches cannot be used. */
  def sketches(folder: TableFolder, segment: String, failure: Throwable): Unit =
    if (warned.add(s"$folder $segment")) {
      log.warn(Printable(ZOrderErrors.withoutPassword(
            s"The sketches of $folder in $segment cannot be used, so files are skipped by their " +
              "minima and maxima alone: " +
              s"${String.valueOf(failure.getMessage).take(MessageLength)}")))
    }
}
