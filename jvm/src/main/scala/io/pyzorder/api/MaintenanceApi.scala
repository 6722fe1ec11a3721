package io.pyzorder.api

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.{ResolvedTable, TableFiles}
import io.pyzorder.commands.TableFunctions
import io.pyzorder.commands.optimize.{Clustering, OptimizePlanner}
import io.pyzorder.common.ZOrderErrors
import io.pyzorder.layout.select.PartitionListing
import io.pyzorder.storage.{FileSystems, Links, TableFolder}

/** The entry points for the Python package `pyzorder.maintenance`. The methods return JSON. */
object MaintenanceApi {

  private val mapper = new ObjectMapper()

  /** How many levels below a folder `tablesBelow` searches. */
  private val Depth = 3

  /**
   * What an OPTIMIZE without ZORDER BY would do. Returns an object with `target` (the table as
   * written in statements), `columns` (the clustering columns; empty if small files are only
   * merged), `isAuto` (whether the recorded workload chooses the columns), `zOrderBy` (if it has
   * chosen some, the ZORDER BY clause with these columns or, if the table is also cut by the
   * workload's queries, with AUTO; or else empty), `choice` (why it has chosen them; or else
   * empty), `kind` and `sentence` (see LayoutVerdict), and `parts`. Each part is a folder in
   * which files would be replaced. It has `where` (a condition that selects the folder's
   * partition; null if the table is not partitioned), `files`, `bytes`, `written`, `saved`,
   * `worth` and `pays` (see PartitionGain).
   */
  def outlook(session: shim.SparkSession, target: String): String = {
    val table = TableFunctions.tableOf(session, target)
    val layout = Clustering.default(session, table).choose(session, table)
    val (columns, remark) = (layout.columns, layout.remark)
    val outlook = OptimizePlanner.outlook(session, table, layout)
    val conditions = PartitionListing.conditions(
      table.partitionSchema, TableFiles.listing(session, table), table.folder(session))
    val node = mapper.createObjectNode()
    node.put("target", table.sql)
    node.put("isAuto", remark.isDefined)
    node.put("kind", outlook.verdict.kind)
    node.put("sentence",
      if (outlook.plan.groups.isEmpty && !exists(session, table.root))
        s"The table's folder ${table.root} does not exist."
      else outlook.verdict.sentence)
    node.put("choice", remark.getOrElse(""))
    node.put("zOrderBy",
      if (remark.isEmpty || columns.isEmpty) ""
      else if (layout.queries.isDefined) " ZORDER BY AUTO"
      else " " + ResolvedTable.zOrderBy(columns))
    val names = node.putArray("columns")
    columns.map(_.label).foreach(names.add(_))
    val parts = node.putArray("parts")
    outlook.gains.foreach { gain =>
      parts.addObject()
        .put("where", conditions.get(gain.folder).orNull)
        .put("files", gain.files).put("bytes", gain.bytes)
        .put("written", gain.written).put("saved", gain.saved).put("worth", gain.worth)
        .put("pays", gain.pays)
    }
    mapper.writeValueAsString(node)
  }

  /**
   * An array with the paths of the tables at or below a folder that have a `_zorder` folder. Does
   * not search inside tables or partitions, in hidden folders, or more than `Depth` levels deep,
   * and does not follow links.
   */
  def tablesBelow(session: shim.SparkSession, path: String): String = {
    val top = new Path(path)
    val fs = top.getFileSystem(session.sessionState.newHadoopConf())
    if (!FileSystems.status(fs, top).exists(_.isDirectory)) throw ZOrderErrors.pathNotFound(path)
    val found = mapper.createArrayNode()
    search(fs, fs.makeQualified(top), Depth).map(_.toString).sorted.foreach(found.add(_))
    mapper.writeValueAsString(found)
  }

  private def exists(session: shim.SparkSession, root: Path): Boolean =
    FileSystems.exists(root.getFileSystem(session.sessionState.newHadoopConf()), root)

  private def search(fs: FileSystem, folder: Path, depth: Int): Seq[Path] = {
    val inner = FileSystems.list(fs, folder).filter(_.isDirectory).map(_.getPath)
    if (inner.exists(_.getName == TableFolder.Name)) Seq(folder)
    else if (depth == 0) Nil
    else inner.filterNot(isSkipped).flatMap(search(fs, _, depth - 1))
  }

  private def isSkipped(folder: Path): Boolean =
    Seq("_", ".").exists(folder.getName.startsWith(_)) || folder.getName.contains('=') ||
      Links.isOne(folder)
}
