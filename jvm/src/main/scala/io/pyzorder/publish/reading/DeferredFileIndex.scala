package io.pyzorder.publish.reading

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.{FileIndex, InMemoryFileIndex, PartitionDirectory}
import org.apache.spark.sql.types.StructType

/**
 * The file index of an unpartitioned catalog table. Spark's own file index lists such a table when
 * Spark resolves the table's name. This index lists the table only when files are first requested.
 * A query that is planned from pyzorder's index never requests files.
 *
 * @param root      the table's folder
 * @param options   the options that Spark's own index would have
 * @param schema    the partition columns; always empty
 * @param knownSize the total size of the table's files according to the index, for use by the cost
 *                  model
 */
final class DeferredFileIndex(
    session: SparkSession,
    root: Path,
    options: Map[String, String],
    schema: StructType,
    knownSize: Long)
    extends FileIndex {

  private var made: Option[InMemoryFileIndex] = None

  /** Spark's own index, created on the first call. */
  def listed: InMemoryFileIndex = synchronized {
    made.getOrElse {
      val index = new InMemoryFileIndex(session, rootPaths, options, Some(schema))
      made = Some(index)
      index
    }
  }

  override def rootPaths: Seq[Path] = Seq(root)

  override def partitionSchema: StructType = new StructType()

  override def listFiles(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    listed.listFiles(partitionFilters, dataFilters)

  override def inputFiles: Array[String] = listed.inputFiles

  /** Discards the listing. The next request for files lists the table again. */
  override def refresh(): Unit = synchronized { made = None }

  override def sizeInBytes: Long = synchronized(made.fold(knownSize)(_.sizeInBytes))

  override def equals(other: Any): Boolean = other match {
    case that: DeferredFileIndex => that.rootPaths == rootPaths
    case _ => false
  }

  override def hashCode: Int = rootPaths.hashCode

  override def toString: String = s"DeferredFileIndex($root)"
}
