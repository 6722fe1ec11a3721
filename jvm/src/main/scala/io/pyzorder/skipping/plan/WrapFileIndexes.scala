package io.pyzorder.skipping.plan

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression}
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.publish.reading.{DeferredFileIndex, JournaledListing}
import io.pyzorder.publish.reading.{ZOrderOrcFileFormat, ZOrderParquetFileFormat}
import io.pyzorder.skipping.files.{FileSource, PlanState, ZOrderFileIndex}
import io.pyzorder.skipping.predicate.FilterColumn

/**
 * Wraps the file index of every Parquet and ORC relation in a ZOrderFileIndex. The rule runs before
 * Spark would prune the relation's partitions, because the ZOrderFileIndex prunes them when a scan
 * lists its files. The rule also wraps the file index of a table without a `_zorder` folder,
 * because a scan that is planned now must still find its files after the table's first OPTIMIZE.
 * The filters above a relation are used only to tell the cost model how much data will be read.
 */
case class WrapFileIndexes(session: shim.SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    val state = PlanState.ofPlan()
    state.note(plan)
    withoutFilters(withFilters(joined(plan, state), state), state)
  }

  /** Makes relations that were wrapped for another plan use this plan's state. */
  private def joined(plan: LogicalPlan, state: PlanState): LogicalPlan = plan.transform {
    case relation: LogicalRelation if isOther(relation, state) =>
      val files = relation.relation.asInstanceOf[HadoopFsRelation]
      val index = indexOf(relation).in(state)
      index.expect(Nil, Nil)
      val joined = relation.copy(relation = files.copy(location = index)(files.sparkSession))
      joined.copyTagsFrom(relation)
      joined
  }

  private def isOther(relation: LogicalRelation, state: PlanState): Boolean =
    relation.relation match {
      case HadoopFsRelation(index: ZOrderFileIndex, _, _, _, _, _) => index.plan ne state
      case _ => false
    }

  /**
   * Wraps the file index and adds the size estimate in one step. A second step would have no
   * effect, because a relation with an estimate equals one without an estimate, and Spark discards
   * a rewrite whose result equals its input.
   */
  private def withFilters(plan: LogicalPlan, state: PlanState): LogicalPlan = plan.transformDown {
    case operation @ PhysicalOperation(_, filters, relation: LogicalRelation)
        if filters.nonEmpty && serves(relation) =>
      val wrapped = estimated(wrap(relation, state), filters)
      operation.transform { case r: LogicalRelation if r eq relation => wrapped }
  }

  private def withoutFilters(plan: LogicalPlan, state: PlanState): LogicalPlan = plan.transform {
    case relation: LogicalRelation if serves(relation) =>
      val wrapped = wrap(relation, state)
      indexOf(wrapped).expect(Nil, Nil)
      wrapped
  }

  private def serves(relation: LogicalRelation): Boolean = relation.relation match {
    case files: HadoopFsRelation =>
      !relation.isStreaming && isSparks(files.location) && formatOf(files).isDefined
    case _ => false
  }

  /**
   * Whether the class of the file index is one of these. Subclasses are not accepted, because they
   * may list different files.
   */
  private def isSparks(location: FileIndex): Boolean =
    location.getClass == classOf[InMemoryFileIndex] ||
      location.getClass == classOf[CatalogFileIndex] ||
      location.getClass == classOf[DeferredFileIndex]

  private def formatOf(files: HadoopFsRelation): Option[FileFormat] = {
    val format = files.fileFormat.getClass
    val roots = files.location.rootPaths
    if (format == classOf[ParquetFileFormat]) Some(new ZOrderParquetFileFormat(roots))
    else if (format == classOf[OrcFileFormat]) Some(new ZOrderOrcFileFormat(roots))
    else None
  }

  private def wrap(relation: LogicalRelation, state: PlanState): LogicalRelation = {
    val files = relation.relation.asInstanceOf[HadoopFsRelation]
    val location = relation.catalogTable.flatMap(_.storage.locationUri).map(new Path(_))
    val partitioned = relation.catalogTable.filter(_.tracksPartitionsInCatalog)
    val properties = relation.catalogTable.fold(Map.empty[String, String])(_.properties)
    val source = new FileSource(
      session, files.location, files.options, files.partitionSchema,
      JournaledListing.tablesOf(_, files.location.rootPaths, location),
      partitioned.map(_.identifier), properties)
    val name = relation.catalogTable.map(_.identifier.table)
      .orElse(source.folders.headOption.map(_.root).orElse(files.location.rootPaths.headOption)
          .map(_.getName)).getOrElse("files")
    val index =
      ZOrderFileIndex(session, source, state, files.dataSchema, name, properties)
    val format = formatOf(files).getOrElse(files.fileFormat)
    val wrapped = relation.copy(relation =
      files.copy(location = index, fileFormat = format)(files.sparkSession))
    wrapped.copyTagsFrom(relation)
    wrapped
  }

  private def indexOf(wrapped: LogicalRelation): ZOrderFileIndex =
    wrapped.relation.asInstanceOf[HadoopFsRelation].location.asInstanceOf[ZOrderFileIndex]

  private def estimated(relation: LogicalRelation, filters: Seq[Expression]): LogicalRelation = {
    val files = relation.relation.asInstanceOf[HadoopFsRelation]
    val index = indexOf(relation)
    val usable = filters
      .filter(FilterColumn.isEvaluable)
      .map(_.transform { // spell names as in the relation
        case a: AttributeReference => relation.attributeMap.get(a).fold(a)(r => a.withName(r.name))
      })
    val (partitionFilters, dataFilters) =
      DataSourceUtils.getPartitionFiltersAndDataFilters(files.partitionSchema, usable)
    index.expect(partitionFilters, dataFilters)
    // The size of a CatalogFileIndex covers all partitions, regardless of the filters.
    val selectsPartitions =
      partitionFilters.nonEmpty && index.wrapped.isInstanceOf[CatalogFileIndex]
    lazy val outcome = index.estimatedOutcome(partitionFilters, dataFilters)
    if (!selectsPartitions && !(index.wasIndexed && outcome.skipped > 0)) relation
    else {
      val bytes = math.max(1L, outcome.selectedBytes)
      // The size from ANALYZE TABLE is capped, because it takes precedence over the file index's
      // size. Row counts and column statistics are kept, because the cost model itself applies the
      // filter to them.
      val catalogTable = relation.catalogTable.map(table =>
        table.copy(stats = table.stats.map((stats: CatalogStatistics) =>
          stats.copy(sizeInBytes = stats.sizeInBytes.min(bytes)))))
      val copied = relation.copy(
        relation = files.copy(location = index.withEstimate(bytes))(files.sparkSession),
        catalogTable = catalogTable)
      copied.copyTagsFrom(relation)
      copied
    }
  }
}
