package io.pyzorder.common

import java.io.FileNotFoundException
import java.nio.file.NoSuchFileException

import org.apache.commons.lang3.exception.ExceptionUtils
import org.apache.hadoop.fs.Path
import org.apache.hadoop.util.Shell
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.types.DataType

/**
 * Creates every error that pyzorder raises; the caller throws it. The messages are in
 * pyzorder/error_conditions.json.
 */
object ZOrderErrors {

  // ---- statements -----------------------------------------------------------------------------

  /** For a syntax error in a pyzorder statement; `near` is the text at the error's position. */
  def syntax(near: String, expected: String, usage: String): ZOrderException =
    if (near.isEmpty) error("ZORDER_SYNTAX_ERROR.END", "expected" -> expected, "usage" -> usage)
    else error("ZORDER_SYNTAX_ERROR.AT", "near" -> near, "expected" -> expected, "usage" -> usage)

  /** `requirement` is a sentence that says which values are valid. */
  def invalidSetting(key: String, value: String, requirement: String): ZOrderException =
    error("ZORDER_INVALID_SETTING",
      "key" -> key, "value" -> value, "requirement" -> requirement.stripSuffix("."))

  /** `verdict` is the sentence that compares lookups before and after the OPTIMIZE. */
  def slowerLookups(table: String, verdict: String): ZOrderException =
    error("ZORDER_SLOWER_LOOKUPS", "table" -> table, "verdict" -> verdict)

  def rangeIdArguments(count: Int): ZOrderException =
    error("ZORDER_INVALID_ARGUMENT.RANGE_ID", "count" -> count.toString)

  /** `takes` describes the function's only argument, a string. */
  def tableFunctionArgument(function: String, takes: String, example: String): ZOrderException =
    error("ZORDER_INVALID_ARGUMENT.TABLE_FUNCTION",
      "function" -> function, "takes" -> takes, "example" -> example)

  /** `built` and `running` are minor versions of Spark, such as 4.3. */
  def jarForOtherSpark(built: String, running: String): ZOrderException =
    error("ZORDER_JAR_FOR_OTHER_SPARK", "built" -> built, "running" -> running)

  // ---- targets --------------------------------------------------------------------------------

  def foreignTable(table: String, provider: String, extension: String): ZOrderException =
    error("ZORDER_FOREIGN_TABLE",
      "table" -> table, "provider" -> provider, "extension" -> extension)

  def unsupportedProvider(table: String, provider: String): ZOrderException =
    error("ZORDER_UNSUPPORTED_PROVIDER", "table" -> table, "provider" -> provider)

  def view(name: String): ZOrderException = error("ZORDER_VIEW", "name" -> name)

  def bucketedTable(table: String, columns: Seq[String]): ZOrderException =
    error("ZORDER_BUCKETED_TABLE", "table" -> table, "columns" -> listed(columns))

  /** `options` lists the table's options that select files by name or time. */
  def filteredTable(table: String, options: Seq[String]): ZOrderException =
    error("ZORDER_FILTERED_TABLE", "table" -> table, "options" -> listed(options))

  /** `folder` is shared by several partitions. */
  def sharedPartitions(table: String, folder: String): ZOrderException =
    error("ZORDER_SHARED_FOLDER.PARTITIONS", "table" -> table, "folder" -> folder)

  def tooManyColumns(count: Int, most: Int): ZOrderException =
    error("ZORDER_TOO_MANY_COLUMNS", "count" -> count.toString, "most" -> most.toString)

  def streamingSink(path: String): ZOrderException =
    error("ZORDER_STREAMING_SINK", "path" -> path)

  def invalidPath(text: String): ZOrderException = error("ZORDER_INVALID_PATH", "path" -> text)

  def pathNotFound(path: String): ZOrderException =
    error("ZORDER_PATH_NOT_FOUND", "path" -> path)

  /**
   * For a path in backticks without a format, which is interpreted as the name of a table that does
   * not exist.
   */
  def pathAsName(path: String): ZOrderException =
    error("ZORDER_TABLE_NOT_FOUND.PATH", "path" -> path)

  /** `failure` was thrown while opening the store. */
  def noSuchStore(path: String, failure: Throwable): ZOrderException = {
    val reason = ExceptionUtils.getThrowables(failure).flatMap(t => Option(t.getMessage)).lastOption
      .getOrElse(failure.toString).takeWhile(_ != '\n').stripSuffix(".")
    because(failure, error("ZORDER_NO_SUCH_STORE", "path" -> path, "reason" -> reason))
  }

  def pathIsFile(path: String): ZOrderException = error("ZORDER_PATH_IS_FILE", "path" -> path)

  def pathInsideTable(path: String, table: String): ZOrderException =
    error("ZORDER_PATH_INSIDE_TABLE", "path" -> path, "table" -> table)

  def noFiles(target: String): ZOrderException =
    error("ZORDER_NO_FILES.ANY", "target" -> target)

  def mixedFormats(path: String): ZOrderException =
    error("ZORDER_MIXED_FORMATS", "path" -> path)

  def otherFormat(path: String, format: String): ZOrderException =
    error("ZORDER_OTHER_FORMAT", "path" -> path, "format" -> format)

  /**
   * For a file or folder that could not be read because of `failure`. If a file was just listed and
   * is now missing, it is not damaged: another process deleted it, which is a conflict.
   */
  def unreadable(path: String, failure: Throwable): ZOrderException =
    if (isMissing(failure)) conflict(s"$path, or a file in it, was replaced or deleted")
    else if (StoreFailures.isDenied(failure)) notReadable(path, failure)
    else damaged(path, failure)

  private def notReadable(path: String, failure: Throwable): ZOrderException =
    error("ZORDER_NOT_READABLE", "path" -> path, "reason" -> StoreFailures.denied(failure))

  /**
   * Whether this is one of the exceptions that Java, Hadoop and Spark throw if a file is missing.
   */
  def isMissing(failure: Throwable): Boolean =
    Iterator.iterate(failure)(_.getCause).takeWhile(_ != null).take(20).exists {
      case opened: FileNotFoundException => // also thrown if a file cannot be created
        !StoreFailures.isDenied(opened) && !StoreFailures.isFull(opened)
      case _: NoSuchFileException => true
      case command: Shell.ExitCodeException => // Hadoop sets local permissions with shell commands
        String.valueOf(command.getMessage).contains("No such file or directory")
      case listing: SparkThrowable => Option(listing.getErrorClass).contains("PATH_NOT_FOUND")
      case _ => false
    }

  /** Whether the failure reports that a file inside `folder` is missing. */
  def isMissing(failure: Throwable, folder: Path): Boolean = isMissing(failure) &&
    ExceptionUtils.getThrowables(failure).exists(cause =>
      String.valueOf(cause.getMessage).contains(folder.toUri.getPath + "/"))

  /**
   * Attaches `cause` to `error` as a suppressed exception, so that it appears in the stack trace.
   */
  def because(cause: Throwable, error: ZOrderException): ZOrderException = {
    error.addSuppressed(cause)
    error
  }

  def damaged(path: String, reason: String): ZOrderException =
    error("ZORDER_UNREADABLE_FILE.DAMAGED", "path" -> path, "reason" -> reason)

  private def damaged(path: String, failure: Throwable): ZOrderException = {
    val messages = ExceptionUtils.getThrowables(failure).toSeq.flatMap(t => Option(t.getMessage))
      .map(_.takeWhile(_ != '\n').stripSuffix("."))
    val why = (messages.find(_.contains(path)).filter(_ != path) ++ messages.lastOption).toSeq
    val reason = why.distinct.mkString("; ")
    val file = messages.flatMap(Named.findAllIn(_)).find(_.contains(path)).getOrElse(path)
    if (file.matches(".*[.](parquet|orc)([.]retired)?")) damaged(path, reason)
    else error("ZORDER_UNREADABLE_FILE.STRAY", "path" -> path, "reason" -> reason)
  }

  /** Matches a file name in a message. */
  private val Named = "[^\\s]+[.][A-Za-z0-9]+(?=[\\s.;,]|$)".r

  /** The column has `dataType` in `place` and `otherType` in `otherPlace`. */
  def incompatibleTypes(
      column: String,
      dataType: String,
      place: String,
      otherType: String,
      otherPlace: String): ZOrderException =
    error("ZORDER_INCOMPATIBLE_TYPES", "column" -> column, "type" -> dataType, "place" -> place,
      "otherType" -> otherType, "otherPlace" -> otherPlace)

  def settingChangesTypes(keys: Seq[String], columns: Seq[String]): ZOrderException =
    error("ZORDER_SETTING_CHANGES_TYPES", "keys" -> listed(keys), "columns" -> listed(columns))

  // ---- columns --------------------------------------------------------------------------------

  def unknownColumn(name: String, table: String, known: Seq[String]): ZOrderException =
    error("ZORDER_UNKNOWN_COLUMN", "column" -> name, "table" -> table, "known" -> listed(known))

  def autoNotAlone(table: String, known: Seq[String]): ZOrderException =
    error("ZORDER_AUTO_NOT_ALONE", "table" -> table, "known" -> listed(known))

  def ambiguousColumn(name: String, table: String, candidates: Seq[String]): ZOrderException =
    error("ZORDER_AMBIGUOUS_COLUMN",
      "column" -> name, "table" -> table, "candidates" -> listed(candidates))

  def unsupportedType(column: String, dataType: DataType): ZOrderException =
    error("ZORDER_UNSUPPORTED_TYPE", "column" -> column, "type" -> dataType.catalogString)

  def notDeterministic(expression: String): ZOrderException =
    error("ZORDER_NOT_INDEXABLE.NOT_DETERMINISTIC", "expression" -> expression)

  def userFunction(expression: String): ZOrderException =
    error("ZORDER_NOT_INDEXABLE.USER_FUNCTION", "expression" -> expression)

  def severalRows(expression: String): ZOrderException =
    error("ZORDER_NOT_INDEXABLE.SEVERAL_ROWS", "expression" -> expression)

  def tooLong(expression: String): ZOrderException =
    error("ZORDER_NOT_INDEXABLE.TOO_LONG", "expression" -> expression)

  def noExpression(expression: String): ZOrderException =
    error("ZORDER_NOT_INDEXABLE.NO_EXPRESSION", "expression" -> expression)

  def unknownParts(expression: String): ZOrderException =
    error("ZORDER_NOT_INDEXABLE.PARTS", "expression" -> expression)

  def unorderedExpression(expression: String, dataType: DataType): ZOrderException =
    error("ZORDER_NOT_INDEXABLE.TYPE",
      "expression" -> expression, "type" -> dataType.catalogString)

  def invalidExpression(expression: String, why: String): ZOrderException =
    error("ZORDER_NOT_INDEXABLE.INVALID", "expression" -> expression, "why" -> why)

  def partitionColumn(name: String): ZOrderException =
    error("ZORDER_PARTITION_COLUMN", "column" -> name)

  def nothingRecorded(table: String): ZOrderException =
    error("ZORDER_NOTHING_RECORDED", "table" -> table)

  def fullWithoutColumns(table: String): ZOrderException =
    error("ZORDER_FULL_WITHOUT_COLUMNS", "table" -> table)

  def duplicateColumn(name: String): ZOrderException =
    error("ZORDER_DUPLICATE_COLUMN", "column" -> name)

  def deniedColumn(name: String): ZOrderException =
    error("ZORDER_DENIED_COLUMN", "column" -> name,
      "key" -> ZOrderConf.indexDenyColumns.key, "property" -> ZOrderConf.indexDenyColumns.property)

  def notPartitionPredicate(columns: Seq[String], partitionColumns: Seq[String]): ZOrderException =
    if (partitionColumns.isEmpty) {
      error("ZORDER_NOT_PARTITION_PREDICATE.UNPARTITIONED", "columns" -> listed(columns))
    } else {
      error("ZORDER_NOT_PARTITION_PREDICATE.PARTITIONED",
        "columns" -> listed(columns), "partitionColumns" -> listed(partitionColumns))
    }

  /** `reason` is a phrase whose subject is the predicate, such as "has a subquery". */
  def unsupportedPredicate(predicate: String, reason: String): ZOrderException =
    error("ZORDER_UNSUPPORTED_PREDICATE", "predicate" -> predicate, "reason" -> reason)

  def undeclaredColumns(file: String, columns: Seq[String]): ZOrderException =
    error("ZORDER_UNDECLARED_COLUMNS.FILE", "file" -> file, "columns" -> listed(columns))

  /** `table` is about to be rewritten; `other` is in the same folder. */
  def otherDefault(table: String, other: String, column: String): ZOrderException =
    error("ZORDER_OTHER_DEFAULT", "table" -> table, "other" -> other, "column" -> column)

  // ---- index ----------------------------------------------------------------------------------

  def indexExists(table: String): ZOrderException = error("ZORDER_INDEX_EXISTS", "table" -> table)

  def indexNotFound(table: String): ZOrderException =
    error("ZORDER_INDEX_NOT_FOUND", "table" -> table)

  def indexTooLarge(folder: String, entries: Long, bytes: Long, limit: Long): ZOrderException =
    error("ZORDER_INDEX_TOO_LARGE",
      "folder" -> folder, "entries" -> entries.toString, "bytes" -> bytes.toString,
      "limit" -> limit.toString)

  // ---- publishing -----------------------------------------------------------------------------

  /**
   * `who` describes the lock's holder, `since` says when its run began, and `lease` is in
   * milliseconds.
   */
  def concurrentOptimize(who: String, since: String, lease: Long, run: Long): ZOrderException =
    error("ZORDER_CONCURRENT_OPTIMIZE", "who" -> who, "since" -> since,
      "seconds" -> (lease / 1000).toString,
      "key" -> ZOrderConf.journalTakeOver.key, "run" -> run.toString)

  /**
   * For a partition that cannot be renamed or moved because an unfinished run may have moved its
   * files.
   */
  def partitionsInUse(table: String): ZOrderException =
    error("ZORDER_PARTITIONS_IN_USE", "table" -> table)

  def conflict(what: String): ZOrderException = error("ZORDER_CONFLICT.CHANGED", "what" -> what)

  /** `reason` is the store's message. */
  def storeFailed(root: String, reason: String): ZOrderException =
    error("ZORDER_STORE_FAILED", "target" -> root, "reason" -> reason)

  /** `reason` is the store's message. */
  def noSpace(root: String, reason: String): ZOrderException =
    error("ZORDER_NO_SPACE.FULL", "target" -> root, "reason" -> reason)

  /** Thrown before anything is written, if `bytes` bytes are needed but only `left` are free. */
  def tooLittleSpace(root: String, bytes: Long, left: Long): ZOrderException =
    error("ZORDER_NO_SPACE.EXPECTED",
      "target" -> root, "bytes" -> bytes.toString, "left" -> left.toString)

  /** `reason` is the store's message. */
  def notWritable(root: String, reason: String): ZOrderException =
    error("ZORDER_NOT_WRITABLE.TABLE", "target" -> root, "reason" -> reason)

  /**
   * For a table without a folder. Either the table was dropped in the meantime, or all of its
   * partitions have their own locations.
   */
  def noFolder(root: String): ZOrderException =
    error("ZORDER_CONFLICT.NO_FOLDER", "folder" -> root)

  /** `counted` is the number of rows in the new files according to their writers. */
  def rowCount(root: String, read: Long, written: Long, counted: Long): ZOrderException =
    error("ZORDER_ROW_COUNT.REWRITE", "folder" -> root, "read" -> read.toString,
      "written" -> written.toString, "counted" -> counted.toString)

  /** For a failure to move files after COMMIT. */
  def unfinished(root: String, failure: Throwable): ZOrderException =
    error("ZORDER_UNFINISHED.FILES", "folder" -> root, "reason" -> firstLine(failure))

  /** For a failure to switch the location after COMMIT. */
  def unfinishedSwitch(from: String, to: String, failure: Throwable): ZOrderException =
    error("ZORDER_UNFINISHED.SWITCH",
      "from" -> from, "to" -> to, "reason" -> firstLine(failure))

  /** For a table that, according to the journal in `from`, was moved to `to`. */
  def tableMoved(from: String, to: String): ZOrderException =
    error("ZORDER_TABLE_MOVED", "from" -> from, "to" -> to)

  /**
   * `place` is a folder outside `root`. Only the catalog can show whether it belongs to the table.
   */
  def unfinishedElsewhere(root: String, place: String): ZOrderException =
    error("ZORDER_UNFINISHED_ELSEWHERE.BY_PATH", "root" -> root, "place" -> place)

  /**
   * An unfinished run on the table in `root` was replacing files in `place`, although no partition
   * is located there.
   */
  def unfinishedWithoutPartition(root: String, place: String): ZOrderException =
    error("ZORDER_UNFINISHED_ELSEWHERE.NO_PARTITION", "root" -> root, "place" -> place)

  def unfinishedOnOtherStore(root: String, place: String, record: String): ZOrderException =
    error("ZORDER_UNFINISHED_ELSEWHERE.OTHER_STORE",
      "root" -> root, "place" -> place, "record" -> record)

  def notAFolder(path: String): ZOrderException = error("ZORDER_NOT_A_FOLDER", "path" -> path)

  def usedUpNumbers(journal: String): ZOrderException =
    error("ZORDER_NO_RUN_NUMBER", "journal" -> journal)

  /** For a record that would be too long for readers to accept. */
  def tooManyFiles(record: String): ZOrderException =
    error("ZORDER_TOO_MANY_FILES", "record" -> record)

  /**
   * For a path that contains a symbolic link. pyzorder never creates links or writes through them.
   */
  def linked(path: String): ZOrderException = error("ZORDER_SYMBOLIC_LINK.WRITING", "path" -> path)

  /** For a data file that is reached through a link whose owner differs from its target's owner. */
  def strangeLink(path: String): ZOrderException =
    error("ZORDER_SYMBOLIC_LINK.DATA_FILE", "path" -> path)

  def overwrittenBehind(from: String, to: String): ZOrderException =
    error("ZORDER_OVERWRITTEN_BEHIND", "from" -> from, "to" -> to)

  /** For a folder that also belongs to another table. `journal` is that table's journal. */
  def sharedFolder(folder: String, journal: String): ZOrderException =
    error("ZORDER_SHARED_FOLDER.TABLE", "folder" -> folder, "journal" -> journal)

  /**
   * For a folder that is shared with another table. `marker` was left by a command on the other
   * table.
   */
  def sharedNow(folder: String, marker: String): ZOrderException =
    error("ZORDER_SHARED_FOLDER.COMMAND", "folder" -> folder, "marker" -> marker)

  def retentionTooShort(hours: Int): ZOrderException =
    error("ZORDER_RETENTION_TOO_SHORT",
      "hours" -> hours.toString, "key" -> ZOrderConf.vacuumCheck.key)

  // ---- switching the location -----------------------------------------------------------------

  def switchByPath(table: String): ZOrderException =
    error("ZORDER_CANNOT_SWITCH_LOCATION.BY_PATH", "table" -> table, "property" -> publishMethod)

  def switchManaged(table: String): ZOrderException =
    error("ZORDER_CANNOT_SWITCH_LOCATION.MANAGED", "table" -> table, "property" -> publishMethod)

  def switchPartitionsUnknown(table: String): ZOrderException =
    error("ZORDER_CANNOT_SWITCH_LOCATION.PARTITIONS_UNKNOWN",
      "table" -> table, "property" -> publishMethod)

  def switchReadersByPath(table: String): ZOrderException =
    error("ZORDER_CANNOT_SWITCH_LOCATION.READERS_BY_PATH", "table" -> table,
      "key" -> ZOrderConf.readersByPath.property, "property" -> publishMethod)

  /**
   * For a table whose folder has no parent, or is named like a partition's folder (`column=value`).
   */
  def switchNoSibling(table: String, folder: String): ZOrderException =
    error("ZORDER_CANNOT_SWITCH_LOCATION.NO_SIBLING",
      "table" -> table, "folder" -> folder, "property" -> publishMethod)

  def switchSharedFolder(table: String, other: String): ZOrderException =
    error("ZORDER_CANNOT_SWITCH_LOCATION.SHARED_FOLDER",
      "table" -> table, "other" -> other, "property" -> publishMethod)

  def switchSharedPartitions(table: String, folder: String): ZOrderException =
    error("ZORDER_CANNOT_SWITCH_LOCATION.SHARED_PARTITIONS",
      "table" -> table, "folder" -> folder, "property" -> publishMethod)

  /** `path` is the path of a file or of its folder. */
  def switchNoPartition(table: String, path: String): ZOrderException =
    error("ZORDER_CANNOT_SWITCH_LOCATION.NO_PARTITION",
      "table" -> table, "path" -> path, "property" -> publishMethod)

  private def publishMethod: String = ZOrderConf.publishMethod.property

  // ---- RESTORE --------------------------------------------------------------------------------

  def nothingToRestore(folder: String): ZOrderException =
    error("ZORDER_CANNOT_RESTORE.NO_OPTIMIZE", "folder" -> folder)

  def everyOptimizeUndone(folder: String): ZOrderException =
    error("ZORDER_CANNOT_RESTORE.ALL_UNDONE", "folder" -> folder)

  /**
   * For a file that cannot be restored because another writer has created a file with the same
   * name.
   */
  def restoreNameTaken(folder: String, path: String): ZOrderException =
    error("ZORDER_NAME_TAKEN", "folder" -> folder, "path" -> path)

  /** For a second RESTORE in a row on a table whose location OPTIMIZE switches. */
  def oneRestoreAtMost(folder: String): ZOrderException =
    error("ZORDER_CANNOT_RESTORE.ONE_AT_MOST", "folder" -> folder)

  /** `partition` is the partition's folder. */
  def restorePartitionGone(folder: String, partition: String): ZOrderException =
    error("ZORDER_CANNOT_RESTORE.PARTITION_GONE", "folder" -> folder, "partition" -> partition)

  /** For a partition that was dropped or moved after an OPTIMIZE had switched its location. */
  def restorePartitionChanged(folder: String, partition: String): ZOrderException =
    error("ZORDER_CANNOT_RESTORE.PARTITION_CHANGED", "folder" -> folder, "partition" -> partition)

  def restorePlaceUnknown(folder: String, partition: String, place: String): ZOrderException =
    error("ZORDER_CANNOT_RESTORE.PLACE_UNKNOWN",
      "folder" -> folder, "partition" -> partition, "place" -> place)

  def restoreNewFilesChanged(folder: String): ZOrderException =
    error("ZORDER_CANNOT_RESTORE.NEW_FILES_CHANGED", "folder" -> folder)

  def restoreNewFileChanged(folder: String, path: String): ZOrderException =
    error("ZORDER_CANNOT_RESTORE.NEW_FILE_CHANGED", "folder" -> folder, "path" -> path)

  def restoreOldFilesChanged(folder: String, place: String): ZOrderException =
    error("ZORDER_CANNOT_RESTORE.OLD_FILES_CHANGED", "folder" -> folder, "place" -> place)

  def restoreOldFileExpired(folder: String, path: String): ZOrderException =
    error("ZORDER_CANNOT_RESTORE.OLD_FILE_EXPIRED", "folder" -> folder, "path" -> path)

  // ---- stores ---------------------------------------------------------------------------------

  def unknownStore(scheme: String): ZOrderException =
    error("ZORDER_UNSUPPORTED_STORE.SCHEME", "scheme" -> scheme)

  /** `failure` was thrown by an attempt to create a hard link. */
  def noHardLinks(path: String, failure: Throwable): ZOrderException =
    error("ZORDER_UNSUPPORTED_STORE.HARD_LINKS",
      "path" -> path, "reason" -> String.valueOf(failure.getMessage))

  def noConditionalPut: ZOrderException = error("ZORDER_UNSUPPORTED_STORE.CONDITIONAL_PUT")

  // ---- construction ---------------------------------------------------------------------------

  /**
   * `name` is the name of an entry in ErrorConditions. The entry's placeholders must be exactly the
   * keys of `parameters`.
   */
  private def error(name: String, parameters: (String, String)*): ZOrderException = {
    val entry = ErrorConditions.entry(name)
    val safe = parameters.map { case (key, value) => key -> shown(value) }.toMap
    new ZOrderException(entry.condition, entry.state, entry.sentence(safe), safe)
  }

  /**
   * Makes a parameter safe to show, because it may contain file names or text from the table's
   * folder.
   */
  private def shown(text: String): String = Printable(withoutPassword(text))

  private def listed(names: Seq[String]): String = names.mkString(", ")

  private def firstLine(failure: Throwable): String =
    String.valueOf(failure.getMessage).takeWhile(_ != '\n').stripSuffix(".")

  private val UserInfo = "://[^/@\\s]*@".r

  /** Masks user names, passwords and keys in paths such as `s3a://key:secret@bucket`. */
  def withoutPassword(text: String): String = UserInfo.replaceAllIn(text, "://***@")
}
