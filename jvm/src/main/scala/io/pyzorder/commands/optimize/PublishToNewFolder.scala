package io.pyzorder.commands.optimize

import io.pyzorder.commands.action.{FileCopies, SwitchingTables}
import io.pyzorder.index.store.ListedTable
import io.pyzorder.layout.select.{PartitionFiles, RewritePlan}
import io.pyzorder.layout.write.WrittenFile
import io.pyzorder.publish.Writer

/**
 * Publishes to a new folder that contains the new files and copies of the files that are not
 * rewritten.
 */
private[optimize] final class PublishToNewFolder(
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
    val all = everyFile(files)
    val copied = all.filterNot(filesOf(plan.groups).toSet)
    writer.reading = all
    var written = Seq.empty[WrittenFile]
    val to = writer.switchLocation(table.identifier.get, all) { to =>
      val filler = Writer.begin(session, to.root, OptimizeAction.Operation)
      Writer.use(filler) {
        filler.layout = layout
        filler.listed =
          Some(ListedTable(
              System.currentTimeMillis(), since = None, isWhole = true, Nil, isAlone = true))
        filler.checkSpace(all.map(_.size).sum)
        written = executor.write(filler, input)
        val filled = executor.filled(written)
        val copies = FileCopies.stage(
          session, filler, SwitchingTables.placesOf(folder, copied), OptimizeAction.Operation)
        val known = PublishStrategy.entriesOf(context, copied, filled.columns(Nil))
        filler.publish(
          Nil, filled.staged ++ copies, known ++ filled.entries, filled.columns,
          rowsOf = all.map(file => folder.resolve(file.path)))
      }
    }
    Published(written, to.root)
  }
}
