package io.pyzorder.publish.relocate

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.pyzorder.shim

/**
 * Finds the tables in a database that share a folder with a given table. The shared folder may be a
 * current or previous folder of the given table or of its partitions.
 */
object CoLocatedTables {

  /**
   * All tables except `own` that use one of `folders` as their location or as the location of a
   * partition. Returns each table together with the folder that it uses. Lists the partitions of
   * every table in the database.
   */
  def of(
      session: shim.SparkSession,
      database: String,
      own: Option[TableIdentifier],
      folders: Set[Path]): Seq[(Path, CatalogTable)] = {
    val catalog = session.sessionState.catalog.externalCatalog
    val conf = session.sessionState.newHadoopConf()
    val names = folders.map(_.getName)
    if (folders.isEmpty || !catalog.databaseExists(database)) Nil
    else {
      val others = catalog.getTablesByName(database, catalog.listTables(database))
        .filterNot(other => own.exists(_.table == other.identifier.table))
      others.flatMap { other =>
        val partitions =
          if (other.partitionColumnNames.isEmpty || !other.tracksPartitionsInCatalog) Nil
          else catalog.listPartitions(database, other.identifier.table)
        (other.storage +: partitions.map(_.storage)).flatMap(_.locationUri).map(new Path(_))
          .filter(path => names(path.getName))
          .map(path => path.getFileSystem(conf).makeQualified(path)).filter(folders).distinct
          .map(_ -> other)
      }
    }
  }
}
