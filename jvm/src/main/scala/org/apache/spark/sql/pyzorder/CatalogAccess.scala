package org.apache.spark.sql.pyzorder

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.connector.catalog.{CatalogManager, Table, V1Table}

/** Access to members of the catalog that are private to Spark's packages. */
object CatalogAccess {

  /** The name of the session catalog. */
  val sessionCatalog: String = CatalogManager.SESSION_CATALOG_NAME

  /** The session catalog's description of a table; None: the table is another catalog's. */
  def catalogTable(table: Table): Option[CatalogTable] = table match {
    case V1Table(description) => Some(description)
    case _ => None
  }
}
