package io.pyzorder.publish.journal

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.conf.Configuration

import io.pyzorder.storage.{Incarnation, TableFolder}

/**
 * The parameters of an OPTIMIZE, which become the defaults of the next one.
 *
 * @param columns        the clustering columns, each of which is an expression's text (Left) or a
 *                       column's path (Right); Nil if the OPTIMIZE only compacted small files
 * @param targetFileSize the target size in bytes; None if it was derived from the table's size. In
 *                       that case, the next OPTIMIZE derives its own
 * @param method         `boundaries` or `direct`
 * @param curve          `zorder`, `hilbert` or `linear`
 */
final case class LayoutRecord(
    columns: Seq[Either[String, Seq[String]]],
    targetFileSize: Option[Long],
    method: String,
    curve: String)

object LayoutRecord {

  private val Field = "layout"
  private val MaxColumns = 63
  private val MaxNameLength = 4096
  private val LeastSize = 1L << 10
  private val GreatestSize = 1L << 40
  private val Methods = Set("boundaries", "direct")
  private val Curves = Set("zorder", "hilbert", "linear")

  /**
   * The layout recorded by the last run that replaced files and has a number less than `before`.
   * None if there is no such run, or if that run recorded no layout. A RESTORE records the layout
   * of the run before the one that it undoes.
   */
  def last(
      hadoopConf: Configuration,
      folder: TableFolder,
      before: Long = Long.MaxValue): Option[LayoutRecord] =
    Incarnation.read(hadoopConf, folder).flatMap { current =>
      Journal.runs(hadoopConf, folder).filter(_.run < before).sortBy(-_.run)
        .find(run =>
          run.outcome.exists(_.commit) && run.retire.exists(_.incarnation == current))
        .flatMap(_.retire.get.layout)
    }

  private[publish] def put(node: ObjectNode, layout: LayoutRecord): Unit = {
    val item = node.putObject(Field)
    val columns = item.putArray("columns")
    layout.columns.foreach {
      case Left(expression) => columns.add(expression)
      case Right(path) =>
        val parts = columns.addArray()
        path.foreach(part => parts.add(part))
    }
    layout.targetFileSize.foreach(size => item.put("targetFileSize", size))
    item.put("method", layout.method).put("curve", layout.curve)
  }

  /**
   * Reads the layout from a record. Returns None if the record has no layout, or a layout that
   * OPTIMIZE could not have written. Anyone with write access to the folder can forge the record,
   * so the number of column names and the file size are limited, and only known methods and curves
   * are accepted. The names are used only if the table has columns with these names.
   */
  private[publish] def of(record: JsonNode): Option[LayoutRecord] =
    try Option(record.get(Field)).filter(_.isObject).map { item =>
        require(item.get("columns").isArray)
        val columns = item.get("columns").elements().asScala.map { column =>
          if (column.isTextual) Left(column.asText)
          else Right(column.elements().asScala.map(_.asText).toVector)
        }.toVector
        val size = Option(item.get("targetFileSize")).map { node =>
          require(node.isIntegralNumber && node.canConvertToLong)
          node.asLong
        }
        val layout =
          LayoutRecord(columns, size, item.get("method").asText, item.get("curve").asText)
        require(columns.length <= MaxColumns && columns.forall(_.fold(_.nonEmpty, _.nonEmpty)))
        require(columns.map(_.fold(_.length, _.map(_.length).sum)).sum <= MaxNameLength)
        require(size.forall(bytes => bytes >= LeastSize && bytes <= GreatestSize))
        require(Methods(layout.method) && Curves(layout.curve))
        layout
      }
    catch { case NonFatal(_) => None }
}
