package io.pyzorder.publish.relocate

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.pyzorder.shim

/** Finds tables of a database that share the current or a previous folder of another table. */
object CoLocatedTables {

  /** The tables other than `own` whose locations are in `folders`, each with its folder. */
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
        other.storage.locationUri.map(new Path(_)).filter(path => names(path.getName))
          .map(path => path.getFileSystem(conf).makeQualified(path)).filter(folders)
          .map(_ -> other)
      }
    }
  }
}
