package io.pyzorder.common

import java.io.FileNotFoundException
import java.nio.file.NoSuchFileException
import java.util.Locale

import org.apache.commons.lang3.exception.ExceptionUtils
import org.apache.hadoop.fs.Path
import org.apache.hadoop.util.Shell
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.types.DataType

/** Every error that pyzorder raises, one error class and one sentence each. Callers throw them. */
object ZOrderErrors {

  // ---- statements -----------------------------------------------------------------------------

  /** The statement starts like one of ours and goes on as none. `near`: the text at the place. */
  def syntax(near: String, expected: String, usage: String): ZOrderException =
    error("ZORDER_SYNTAX_ERROR", "42601",
      s"Syntax error at or near ${if (near.isEmpty) "the end of the statement" else s"'$near'"}: " +
        s"$expected. The statement is written: $usage", "near" -> near)

  def invalidSetting(key: String, value: String, why: String): ZOrderException =
    error("ZORDER_INVALID_SETTING", "22023", s"The value '$value' of $key cannot be used. $why",
      "key" -> key, "value" -> value)

  /** `why`: the verdict's sentence. */
  def slowerLookups(table: String, why: String): ZOrderException =
    error("ZORDER_SLOWER_LOOKUPS", "55000",
      s"OPTIMIZE would make lookups in $table slower. $why Nothing was changed. To keep the " +
        "files as they are, unset spark.sql.zorder.optimize.targetFileSize: the size that the " +
        "table was optimized with is the default. To go on, write OPTIMIZE … FULL, on the " +
        "command line --force.", "table" -> table)

  // ---- targets --------------------------------------------------------------------------------

  def foreignTable(table: String, provider: String, extension: String): ZOrderException =
    error("ZORDER_FOREIGN_TABLE", "0A000",
      s"$table is a $provider table, which $provider itself must optimize, and the session's SQL " +
        s"parser has no such statement: add $extension to spark.sql.extensions, or use " +
        s"$provider's own procedures.", "table" -> table, "provider" -> provider)

  def unsupportedProvider(table: String, provider: String): ZOrderException =
    error("ZORDER_UNSUPPORTED_PROVIDER", "0A000",
      s"$table is stored as $provider; only Parquet and ORC tables can be optimized and indexed. " +
        "Copy it into a table USING parquet or USING orc first.",
      "table" -> table, "provider" -> provider)

  def view(name: String): ZOrderException =
    error("ZORDER_VIEW", "42809",
      s"$name is a view and has no files of its own: name the table that it reads.",
      "name" -> name)

  def bucketedTable(table: String, columns: Seq[String]): ZOrderException =
    error("ZORDER_BUCKETED_TABLE", "0A000",
      s"$table is bucketed by ${columns.mkString(", ")}, and clustering its files would break " +
        "its buckets. Copy it into a table without CLUSTERED BY … INTO … BUCKETS, or build only " +
        "the statistics: CREATE SKIPPING INDEX ON the table.", "table" -> table)

  /** `options`: that choose files by name or time. */
  def filteredTable(table: String, options: Seq[String]): ZOrderException =
    error("ZORDER_FILTERED_TABLE", "0A000",
      s"$table reads only some of the files in its folder, by its options " +
        s"${options.mkString(", ")}, and might not read new ones. Nothing was changed. Move the " +
        "files that count into a folder of their own, and create the table there without these " +
        "options.", "table" -> table)

  /** `folder`: of more than one partition. */
  def sharedPartitions(table: String, folder: String): ZOrderException =
    error("ZORDER_SHARED_FOLDER", "55000",
      s"More than one partition of $table lies in $folder, and a file does not tell which of " +
        "them its rows belong to. Nothing was changed. Drop all but one of them, or leave them " +
        "out with WHERE.", "folder" -> folder)

  def tooManyColumns(asked: Int, most: Int): ZOrderException =
    error("ZORDER_TOO_MANY_COLUMNS", "54011",
      s"$asked clustering columns are more than the $most that a z-value has bits for. Name the " +
        "two to four columns that queries filter by most: each further one makes files wider.")

  def streamingSink(path: String): ZOrderException =
    error("ZORDER_STREAMING_SINK", "0A000",
      s"$path is written by a streaming query, whose _spark_metadata names the files that count: " +
        "new files would not be seen. Read the stream's output into another table and optimize " +
        "that one.", "path" -> path)

  def invalidPath(text: String): ZOrderException =
    error("ZORDER_INVALID_PATH", "42K03",
      s"'$text' is no path. Name the folder of a table, such as '/data/sales' or " +
        "'s3a://bucket/sales'.", "path" -> text)

  def pathNotFound(path: String): ZOrderException =
    error("ZORDER_PATH_NOT_FOUND", "42K03", s"The path $path does not exist. Check its spelling.",
      "path" -> path)

  /** `failure`: what opening the store raised. */
  def noSuchStore(path: String, failure: Throwable): ZOrderException = {
    val why = ExceptionUtils.getThrowables(failure).flatMap(t => Option(t.getMessage)).lastOption
      .getOrElse(failure.toString).takeWhile(_ != '\n').stripSuffix(".")
    because(failure,
      error("ZORDER_NO_SUCH_STORE", "42K03",
        s"Spark cannot open the store of $path: $why. Check how the path begins, and that Spark " +
          "has the jars and settings of this store.", "path" -> path))
  }

  def pathIsFile(path: String): ZOrderException =
    error("ZORDER_PATH_IS_FILE", "42K03",
      s"$path is a file; name the folder of the table that it belongs to.", "path" -> path)

  def pathInsideTable(path: String, table: String): ZOrderException =
    error("ZORDER_PATH_INSIDE_TABLE", "42K03",
      s"$path is a partition folder of $table: name $table and give the partition in WHERE.",
      "path" -> path, "table" -> table)

  def noFiles(target: String): ZOrderException =
    error("ZORDER_NO_FILES", "42K03",
      s"$target holds no Parquet or ORC data files, so neither its format nor its columns are " +
        "known. Name a folder with data files in it.", "target" -> target)

  def mixedFormats(path: String): ZOrderException =
    error("ZORDER_MIXED_FORMATS", "42K03",
      s"$path holds both Parquet and ORC files. Say which of them is meant: parquet.`$path` or " +
        s"orc.`$path`.", "path" -> path)

  def otherFormat(path: String, format: String): ZOrderException =
    error("ZORDER_OTHER_FORMAT", "42K03",
      s"$path holds ${format.toUpperCase(Locale.ROOT)} files: write $format.`$path`.",
      "path" -> path, "format" -> format)

  /**
   * `path`: of a file or a folder; `failure`: what reading it raised. A file that had just been
   * listed and is gone is not damaged: someone else deleted it.
   */
  def unreadable(path: String, failure: Throwable): ZOrderException =
    if (isMissing(failure)) conflict(s"$path, or a file of it, was replaced or deleted")
    else if (StoreFailures.isDenied(failure)) notReadable(path, failure)
    else damaged(path, failure)

  private def notReadable(path: String, failure: Throwable): ZOrderException =
    error("ZORDER_NOT_READABLE", "42501",
      s"This command must read $path, and may not: ${StoreFailures.denied(failure)}. Nothing was " +
        "changed. Get the right to, and run the command again.", "path" -> path)

  /** Whether a file was not there, by all that Java, Hadoop and Spark raise then. */
  def isMissing(failure: Throwable): Boolean =
    Iterator.iterate(failure)(_.getCause).takeWhile(_ != null).take(20).exists {
      case opened: FileNotFoundException => // which a file that cannot be made is told by, too
        !StoreFailures.isDenied(opened) && !StoreFailures.isFull(opened)
      case _: NoSuchFileException => true
      case command: Shell.ExitCodeException => // a disk's permissions are set by commands
        String.valueOf(command.getMessage).contains("No such file or directory")
      case listing: SparkThrowable => Option(listing.getErrorClass).contains("PATH_NOT_FOUND")
      case _ => false
    }

  /** Whether a file in a folder was not there. */
  def isMissing(failure: Throwable, folder: Path): Boolean = isMissing(failure) &&
    ExceptionUtils.getThrowables(failure).exists(cause =>
      String.valueOf(cause.getMessage).contains(folder.toUri.getPath + "/"))

  /** The error, keeping what it was made of for who reads the stack trace. */
  def because(cause: Throwable, error: ZOrderException): ZOrderException = {
    error.addSuppressed(cause)
    error
  }

  private def damaged(path: String, failure: Throwable): ZOrderException = {
    val messages = ExceptionUtils.getThrowables(failure).toSeq.flatMap(t => Option(t.getMessage))
      .map(_.takeWhile(_ != '\n').stripSuffix("."))
    val why = (messages.find(_.contains(path)).filter(_ != path) ++ messages.lastOption).toSeq
    val file = messages.flatMap(Named.findAllIn(_)).find(_.contains(path)).getOrElse(path)
    val todo =
      if (file.matches(".*[.](parquet|orc)")) "Repair or remove what is damaged"
      else "If that is no data file, move it, or begin its name with _ or . so that Spark passes " +
        "it over; else repair or remove what is damaged"
    error("ZORDER_UNREADABLE_FILE", "58030",
      s"$path cannot be read: ${why.distinct.mkString("; ")}. Nothing was changed. $todo, and " +
        "run the command again.", "path" -> path)
  }

  /** A file, as messages name one. */
  private val Named = "[^\\s]+[.][A-Za-z0-9]+(?=[\\s.;,]|$)".r

  /** `one` and `other`: places that have the column, of these types. */
  def incompatibleTypes(
      column: String,
      oneType: String,
      one: String,
      otherType: String,
      other: String): ZOrderException =
    error("ZORDER_INCOMPATIBLE_TYPES", "42825",
      s"Column $column is of type $oneType in $one and of type $otherType in $other, and one " +
        "table cannot hold both. Nothing was changed. Write one of them again with the other's " +
        "type, or move it out of the table's folder, and run the command again.",
      "column" -> column)

  def settingChangesTypes(keys: Seq[String], columns: Seq[String]): ZOrderException =
    error("ZORDER_SETTING_CHANGES_TYPES", "22023",
      s"With ${keys.mkString(", ")} as this session has set it, ${columns.mkString(", ")} would " +
        "be written as another type than the files have now, for every other reader too. RESET " +
        "it, or make a catalog table over the folder that declares the columns' types.",
      "columns" -> columns.mkString(", "))

  // ---- columns --------------------------------------------------------------------------------

  def unknownColumn(name: String, table: String, known: Seq[String]): ZOrderException =
    error("ZORDER_UNKNOWN_COLUMN", "42703",
      s"There is no column $name in $table. It has: ${known.mkString(", ")}.",
      "column" -> name, "table" -> table)

  def ambiguousColumn(name: String, table: String, candidates: Seq[String]): ZOrderException =
    error("ZORDER_AMBIGUOUS_COLUMN", "42702",
      s"Column $name of $table could be any of ${candidates.mkString(", ")}: write it exactly, " +
        "with spark.sql.caseSensitive=true.", "column" -> name, "table" -> table)

  def unsupportedType(column: String, dataType: DataType): ZOrderException =
    error("ZORDER_UNSUPPORTED_TYPE", "42K09",
      s"Column $column is of type ${dataType.catalogString}, whose values have no order that " +
        "files can be clustered by. Leave it out, or name a field of a struct.",
      "column" -> column, "type" -> dataType.catalogString)

  def partitionColumn(name: String): ZOrderException =
    error("ZORDER_PARTITION_COLUMN", "42P10",
      s"$name is a partition column: each partition's files hold one value of it and are " +
        "clustered by themselves. Leave it out; to optimize certain partitions, use WHERE.",
      "column" -> name)

  def fullWithoutColumns(table: String): ZOrderException =
    error("ZORDER_FULL_WITHOUT_COLUMNS", "42601",
      "FULL lays out anew what is clustered already, and needs columns. Write OPTIMIZE … FULL " +
        "ZORDER BY (…), or set the table property zorder.clusterBy; to join small files, leave " +
        "FULL out.", "table" -> table)

  def duplicateColumn(name: String): ZOrderException =
    error("ZORDER_DUPLICATE_COLUMN", "42701", s"Column $name is named twice. Name it once.",
      "column" -> name)

  def deniedColumn(name: String): ZOrderException =
    error("ZORDER_DENIED_COLUMN", "42501",
      s"Column $name is not to be recorded in an index, by ${ZOrderConf.indexDenyColumns.key} or " +
        s"the table property ${ZOrderConf.indexDenyColumns.property}, so that no file could be " +
        "skipped by it. Name other columns, or take it from that list.", "column" -> name)

  def notPartitionPredicate(columns: Seq[String], partitionColumns: Seq[String]): ZOrderException =
    error("ZORDER_NOT_PARTITION_PREDICATE", "42P10",
      s"WHERE chooses whole partitions, but ${columns.mkString(", ")} is no partition column. " +
        (if (partitionColumns.isEmpty) "The table is not partitioned: leave WHERE out."
         else s"Partition columns are: ${partitionColumns.mkString(", ")}."),
      "columns" -> columns.mkString(", "))

  def unsupportedPredicate(predicate: String, why: String): ZOrderException =
    error("ZORDER_UNSUPPORTED_PREDICATE", "42P10",
      s"WHERE $predicate cannot choose partitions: it $why. Compare partition columns with " +
        "constants.", "predicate" -> predicate)

  def undeclaredColumns(file: String, columns: Seq[String]): ZOrderException =
    error("ZORDER_UNDECLARED_COLUMNS", "42K03",
      s"The file $file has columns that the table does not declare " +
        s"(${columns.mkString(", ")}), and rewriting it would lose them. Add them with ALTER " +
        "TABLE … ADD COLUMNS, or leave the file's partition out.", "file" -> file)

  /** `table` is to be rewritten, `other` lies in the same folder. */
  def otherDefault(table: String, other: String, column: String): ZOrderException =
    error("ZORDER_OTHER_DEFAULT", "55000",
      s"$other lies in the same folder, and has another default for column $column, which files " +
        s"of $table lack: rewriting them would give their rows a value for good. Nothing was " +
        s"changed. Drop one of the two tables, or create it again with the other's default.",
      "table" -> table, "column" -> column)

  // ---- index ----------------------------------------------------------------------------------

  def indexExists(table: String): ZOrderException =
    error("ZORDER_INDEX_EXISTS", "42710",
      s"$table already has a skipping index. Use REFRESH SKIPPING INDEX to bring it up to date, " +
        "or DROP SKIPPING INDEX first to choose other columns.", "table" -> table)

  def indexNotFound(table: String): ZOrderException =
    error("ZORDER_INDEX_NOT_FOUND", "42704",
      s"$table has no skipping index. Run OPTIMIZE, or CREATE SKIPPING INDEX ON it.",
      "table" -> table)

  // ---- publishing -----------------------------------------------------------------------------

  /** `who`: host and process; `since`: when it began; `takeOver`: how to go on if it is dead. */
  def concurrentOptimize(who: String, since: String, takeOver: String): ZOrderException =
    error("ZORDER_CONCURRENT_OPTIMIZE", "40001",
      s"Another command is rewriting this table: $who, since $since. Wait until it ends. $takeOver",
      "who" -> who, "since" -> since)

  def conflict(what: String): ZOrderException =
    error("ZORDER_CONFLICT", "40001",
      s"The table was changed while this command ran: $what. Nothing of it was overwritten; run " +
        "the command again.", "what" -> what)

  /** `why`: what the store said. */
  def noSpace(root: String, why: String): ZOrderException =
    error("ZORDER_NO_SPACE", "53100",
      s"There is no room for what this command writes into $root: $why. Every row of the table " +
        "is where it was. Free some space, and run the command again.")

  /** `why`: what the store said. */
  def notWritable(root: String, why: String): ZOrderException =
    error("ZORDER_NOT_WRITABLE", "42501",
      s"This command must create, rename and delete files in $root, and may not: $why. Every row " +
        "of the table is where it was. Get the right to, and run the command again.")

  /** Of a table that was dropped meanwhile, or whose partitions all lie elsewhere. */
  def noFolder(root: String): ZOrderException =
    error("ZORDER_CONFLICT", "40001",
      s"The folder $root does not exist. If the table was renamed or dropped meanwhile, nothing " +
        "of it was changed; if its partitions all lie elsewhere, make the folder: pyzorder keeps " +
        "there what it knows of the table.", "what" -> s"$root does not exist")

  /** After COMMIT. `failure`: what moving files raised. */
  def unfinished(root: String, failure: Throwable): ZOrderException =
    error("ZORDER_UNFINISHED", "58030",
      s"The new files of $root count from now on, but not all files could be brought to their " +
        s"places: ${String.valueOf(failure.getMessage).takeWhile(_ != '\n').stripSuffix(".")}. " +
        "With pyzorder every row is read once; other readers may miss rows or read some twice. " +
        "Mend that, and run VACUUM on the table to finish it.")

  /** After COMMIT. `failure`: what switching the location raised. */
  def unfinishedSwitch(from: String, to: String, failure: Throwable): ZOrderException =
    error("ZORDER_UNFINISHED", "58030",
      s"The table's location was to be switched from $from to $to, which hold the same rows, and " +
        "it is not certain that it was: " +
        s"${String.valueOf(failure.getMessage).takeWhile(_ != '\n').stripSuffix(".")}. Mend " +
        "that, and run VACUUM on the table to finish it.")

  /** `why`: ends a sentence. */
  def cannotSwitch(table: String, why: String): ZOrderException =
    error("ZORDER_CANNOT_SWITCH_LOCATION", "0A000",
      s"The location of $table cannot be switched to a new folder, because $why. Set " +
        s"${ZOrderConf.publishMethod.property} to 'rename' to replace its files in their folder.",
      "table" -> table)

  /** The journal of `from` says that its table lies in `to` since. */
  def tableMoved(from: String, to: String): ZOrderException =
    error("ZORDER_TABLE_MOVED", "55000",
      s"OPTIMIZE has switched the table that was in $from to $to. Name the table as the catalog " +
        s"does, after REFRESH TABLE; if it is to stay in $from, delete $to.",
      "from" -> from, "to" -> to)

  /** Only the catalog tells whether a place outside of a table's folder is the table's. */
  def unfinishedElsewhere(root: String, place: String): ZOrderException =
    error("ZORDER_UNFINISHED_ELSEWHERE", "55000",
      s"A command that was killed has left a record in $root of files in $place, outside of it. " +
        "Only the catalog can tell whether a partition of the table lies there: run the command " +
        "on the table by its name.", "root" -> root, "place" -> place)

  def usedUpNumbers(journal: String): ZOrderException =
    error("ZORDER_NO_RUN_NUMBER", "55000",
      s"The last run in $journal has the greatest number that a run can have. No run of pyzorder " +
        "gets there: delete the files of that number, which somebody else has put there.",
      "journal" -> journal)

  /** Readers take no longer record for one of pyzorder's. */
  def tooManyFiles(record: String): ZOrderException =
    error("ZORDER_TOO_MANY_FILES", "54000",
      s"The run replaces more files than its record $record can name. Choose fewer partitions " +
        "with WHERE. Nothing was changed.",
      "record" -> record)

  /** pyzorder makes no links: where one leads is none of its business. */
  def linked(path: String): ZOrderException =
    error("ZORDER_SYMBOLIC_LINK", "55000",
      s"$path is a symbolic link, or lies behind one. It could lead out of the table's folder, " +
        "so nothing is written through it: delete the link, or put the folder in its place.",
      "path" -> path)

  /** Of a data file. */
  def strangeLink(path: String): ZOrderException =
    error("ZORDER_SYMBOLIC_LINK", "55000",
      s"$path is, or lies behind, a symbolic link of another owner than what it leads to. Rows " +
        "that are not in the table's folder would be copied there: delete the link, or put what " +
        "it leads to in its place.",
      "path" -> path)

  def overwrittenBehind(from: String, to: String): ZOrderException =
    error("ZORDER_OVERWRITTEN_BEHIND", "55000",
      s"$from was overwritten by a command that was planned before OPTIMIZE switched the table " +
        s"to $to, so that its rows do not show. Run that command again and delete $from, or take " +
        s"$from for the table by ALTER TABLE … SET LOCATION and delete $to.",
      "from" -> from, "to" -> to)

  /** `journal`: of the other table. */
  def sharedFolder(folder: String, journal: String): ZOrderException =
    error("ZORDER_SHARED_FOLDER", "55000",
      s"$folder is the folder of another table as well, which has a journal of its own there. " +
        "Nothing was changed. Optimize it through one of the two tables only, and leave it out " +
        s"with WHERE in the other; if the other table is gone, delete $journal.",
      "folder" -> folder)

  /** `marker`: of the other command. */
  def sharedNow(folder: String, marker: String): ZOrderException =
    error("ZORDER_SHARED_FOLDER", "55000",
      s"$folder is the folder of another table as well, a command on which is at work there, or " +
        "was killed. Nothing was changed. Wait for its end, or run VACUUM on that table to " +
        s"finish what it left; if that table is gone, delete $marker.", "folder" -> folder)

  def retentionTooShort(hours: Int): ZOrderException =
    error("ZORDER_RETENTION_TOO_SHORT", "22023",
      s"VACUUM … RETAIN $hours HOURS would delete files that running queries may still read, and " +
        "that RESTORE needs. Retain at least 1 hour, or, to erase data at once, set " +
        s"${ZOrderConf.vacuumCheck.key} to false.", "hours" -> hours.toString)

  def storeUnsupported(scheme: String, why: String): ZOrderException =
    error("ZORDER_UNSUPPORTED_STORE", "0A000",
      s"Files on '$scheme' cannot be published safely: $why.", "scheme" -> scheme)

  /** For errors of one place only; `sentence` ends with a full stop and says what to do. */
  def error(
      condition: String,
      state: String,
      sentence: String,
      parameters: (String, String)*): ZOrderException =
    new ZOrderException(
      condition, state, withoutPassword(sentence),
      parameters.map { case (name, value) => name -> withoutPassword(value) }.toMap)

  private val UserInfo = "://[^/@\\s]*@".r

  /** A path may hold a user's password or keys, as `s3a://key:secret@bucket`: none is told. */
  def withoutPassword(text: String): String = UserInfo.replaceAllIn(text, "://***@")
}
