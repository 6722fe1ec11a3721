package org.apache.spark.sql.pyzorder

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.connector.catalog.{CatalogManager, Table, V1Table}

/** What Spark's catalog keeps to its own packages. */
object CatalogAccess {

  /** The name of the session's own catalog. */
  val sessionCatalog: String = CatalogManager.SESSION_CATALOG_NAME

  /** The session catalog's own description of a table; None: some other catalog's table. */
  def catalogTable(table: Table): Option[CatalogTable] = table match {
    case V1Table(description) => Some(description)
    case _ => None
  }
}
