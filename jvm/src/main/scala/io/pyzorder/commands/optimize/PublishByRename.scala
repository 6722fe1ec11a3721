package io.pyzorder.commands.optimize

import io.pyzorder.layout.select.{PartitionFiles, RewriteGroup, RewritePlan}
import io.pyzorder.layout.write.WrittenFile
import io.pyzorder.publish.Writer

/**
 * Publishes within the table's folder, batch by batch. Each batch is a separate run in the journal
 * and is published before the next one begins.
 */
private[optimize] final class PublishByRename(context: OptimizeContext, executor: OptimizeExecutor)
    extends PublishStrategy {
  import context._

  override def check(files: Seq[PartitionFiles]): Unit = ()

  override def publish(
      writer: Writer,
      files: Seq[PartitionFiles],
      plan: RewritePlan,
      input: RewriteInput): Published = {
    val batches = plan.batches(batchSize)
    var listed = writer.listed
    val written = batches.zipWithIndex.flatMap { case (batch, number) =>
      val next =
        if (number == 0) writer
        else Writer.begin(session, table.folder(session), OptimizeAction.Operation)
      next.listed = listed
      val files = if (number == 0) publish(next, batch, input)
      else Writer.use(next)(publish(next, batch, input))
      if (number + 1 < batches.length) listed = next.listedNext
      files
    }
    Published(written, table.root)
  }

  private def publish(
      writer: Writer,
      batch: Seq[RewriteGroup],
      input: RewriteInput): Seq[WrittenFile] = {
    writer.layout = layout
    writer.reading = filesOf(batch)
    writer.checkAlone(batch.map(_.folder).distinct)
    val written = executor.write(writer, input.copy(groups = batch))
    val filled = executor.filled(written)
    writer.publish(filesOf(batch), filled.staged, filled.entries, filled.columns)
    written
  }
}
