package io.pyzorder.commands.optimize

import io.pyzorder.commands.action.{FileCopies, SwitchingTables}
import io.pyzorder.layout.select.{PartitionFiles, RewritePlan}
import io.pyzorder.layout.write.WrittenFile
import io.pyzorder.publish.Writer
import io.pyzorder.storage.FileRef

/**
 * Publishes to a new folder for each partition in which files are rewritten. Each of these folders
 * contains the partition's new files and copies of the partition's other files.
 */
private[optimize] final class PublishToNewPartitionFolders(
    context: OptimizeContext,
    executor: OptimizeExecutor)
    extends PublishStrategy {
  import context._

  override def check(files: Seq[PartitionFiles]): Unit =
    SwitchingTables.checkFlat(session, table, everyFile(files))

  override def publish(
      writer: Writer,
      files: Seq[PartitionFiles],
      plan: RewritePlan,
      input: RewriteInput): Published = {
    val touched = files.filter(plan.groups.map(_.folder).toSet contains _.folder)
    val read = everyFile(touched)
    val copied = read.filterNot(filesOf(plan.groups).toSet)
    val moves = SwitchingTables.moves(session, table, touched.map(_.folder))
    writer.reading = everyFile(files)
    writer.layout = layout
    var written = Seq.empty[WrittenFile]
    writer.switchPartitions(table.identifier.get, moves, read) { folders =>
      writer.checkSpace(read.map(_.size).sum)
      written = executor.write(writer,
        input.copy(groups =
          plan.groups.map(group => group.copy(folder = folders(group.folder)))))
      val filled = executor.filled(written)
      def renamed(file: FileRef) = s"${folders(file.folder)}/${file.name}"
      val names = copied.map(file => file.path -> renamed(file)).toMap
      val copies = FileCopies.stage(
        session, writer, copied.map(file => names(file.path) -> folder.resolve(file.path)),
        OptimizeAction.Operation)
      val known = PublishStrategy.entriesOf(context, copied, filled.columns(Nil))
        .map(entry => entry.copy(path = names(entry.path)))
      filled.copy(staged = filled.staged ++ copies, entries = known ++ filled.entries)
    }
    Published(written, table.root)
  }
}
