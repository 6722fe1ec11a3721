package io.pyzorder.storage.metadata

import org.apache.hadoop.fs.Path

import io.pyzorder.storage.{RunNumber, TableFolder}

/** The names of the files in `_zorder/_index` and `_zorder/_journal` that are numbered in order. */
object MetadataNames {

  private val Pointer = "_v00(\\d{18})\\.json".r

  private val Record = "_(\\d+)\\.(prepare|retire|switch|partitions|outcome|done)".r

  /** The pointer with this version: `_index/_v00000000000000000007.json` for 7. */
  def pointer(folder: TableFolder, version: Long): Path =
    new Path(folder.index, f"_v$version%020d.json")

  /** The version of a pointer; None if the file is not a pointer. */
  def versionOf(name: String): Option[Long] = name match {
    case Pointer(digits) => RunNumber.of(digits.dropWhile(_ == '0')).filter(_ < RunNumber.Greatest)
    case _ => None
  }

  /** A record of the run with the number `run`: `_journal/_3.done` for 3 and `done`. */
  def record(folder: TableFolder, run: Long, kind: String): Path =
    new Path(folder.journal, s"_$run.$kind")

  /** The run and the kind of a record; None if the file is not a record. */
  def recordOf(name: String): Option[(Long, String)] = name match {
    case Record(run, kind) => RunNumber.of(run).map(_ -> kind)
    case _ => None
  }
}
