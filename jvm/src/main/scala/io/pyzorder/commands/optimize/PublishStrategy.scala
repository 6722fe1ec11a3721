package io.pyzorder.commands.optimize

import org.apache.hadoop.fs.Path

import io.pyzorder.commands.action.{SkippingIndex, SwitchingTables}
import io.pyzorder.index.model.{FileEntry, IndexedColumn}
import io.pyzorder.index.store.IndexStore
import io.pyzorder.layout.select.{PartitionFiles, RewritePlan}
import io.pyzorder.layout.write.WrittenFile
import io.pyzorder.publish.Writer
import io.pyzorder.storage.FileRef

/**
 * Determines how the new files of an OPTIMIZE replace the old ones. Either the new files are
 * renamed into the table's folder, or the table or its partitions are switched to new folders in
 * the catalog.
 */
private[optimize] trait PublishStrategy {

  /** Throws ZORDER_CANNOT_SWITCH_LOCATION if this strategy cannot replace these files. */
  def check(files: Seq[PartitionFiles]): Unit

  /**
   * Writes and publishes the new files. Files that were published before a failure remain
   * published.
   *
   * @param writer the writer that holds the table's lock
   * @param files  all considered files
   * @param plan   the files to rewrite, in groups with at least one row each
   * @param input  the files to rewrite and their footers
   */
  def publish(
      writer: Writer,
      files: Seq[PartitionFiles],
      plan: RewritePlan,
      input: RewriteInput): Published
}

/**
 * The result of publishing.
 *
 * @param files the new files
 * @param root  the table's folder after publishing
 */
private[optimize] final case class Published(files: Seq[WrittenFile], root: Path)

private[optimize] object PublishStrategy {

  /**
   * The strategy that the settings select. Throws ZORDER_CANNOT_SWITCH_LOCATION if the strategy
   * cannot be used on the table.
   */
  def of(context: OptimizeContext, executor: OptimizeExecutor): PublishStrategy =
    if (!SwitchingTables.asks(context.session, context.table)) {
      new PublishByRename(context, executor)
    } else if (context.table.partitionSchema.nonEmpty) {
      new PublishToNewPartitionFolders(context, executor)
    } else new PublishToNewFolder(context, executor)

  /**
   * The index entries of files that are copied unchanged. They contain only the statistics of
   * `columns`.
   */
  def entriesOf(
      context: OptimizeContext,
      copied: Seq[FileRef],
      columns: Seq[IndexedColumn]): Seq[FileEntry] =
    context.latest.toSeq.flatMap { ref =>
      val names = columns.filter(ref.columns.contains).map(_.name).toSet
      val known = IndexStore.loadAll(context.session, ref)(_.entries).getOrElse(Nil)
      SkippingIndex.valid(known, copied).map(entry =>
        entry.copy(statistics = entry.statistics.filter { case (name, _) => names(name) }))
    }
}
