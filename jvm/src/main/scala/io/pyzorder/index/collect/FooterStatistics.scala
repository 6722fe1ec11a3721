package io.pyzorder.index.collect

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.column.statistics.Statistics
import org.apache.parquet.hadoop.metadata.{ColumnChunkMetaData, ParquetMetadata}
import org.apache.parquet.schema.{GroupType, PrimitiveType, Type}

/**
 * Reads statistics from Parquet footers if they provably describe the values that Spark reads.
 *
 * parquet-mr already withholds unreliable statistics. The old `min` and `max` fields are based on
 * signed comparisons, so parquet-mr exposes them only if the column has a signed order. It does not
 * expose statistics from writers that are known to have written wrong statistics (PARQUET-251), or
 * statistics of columns for which the footer specifies an unsupported order. ParquetRules converts
 * exposed bounds to bounds of the values that Spark reads.
 */
private[index] object FooterStatistics {

  /** Reads the statistics from the footer of one file. Propagates the reader's exceptions. */
  def read(file: FileStatus, footers: ParquetFooters, question: FooterQuestion): FileFooter = {
    val footer = footers.read(file)
    val numRecords = footer.getBlocks.asScala.map(_.getRowCount).sum
    val origin = ParquetOrigin.of(footer.getFileMetaData)
    FileFooter(numRecords, question.columns.map(answer(footer, numRecords, origin, question, _)))
  }

  private def answer(
      footer: ParquetMetadata,
      numRecords: Long,
      origin: ParquetOrigin,
      question: FooterQuestion,
      column: FooterColumn): FooterAnswer =
    find(footer.getFileMetaData.getSchema, column.path.toList, question) match {
      // A column that is missing from the file is read as null. If the column has a default,
      // readers whose schema includes the default see it, while other readers of the same file see
      // null. Unknown statistics are correct for both kinds of readers.
      case Absent =>
        if (column.hasDefault) FooterAnswer.Unknown else FooterAnswer.allNull(numRecords)
      case Unclear => FooterAnswer.Unknown
      case Present(_, leaf) if !ParquetRules.isReadable(leaf, column.dataType) =>
        FooterAnswer.Unknown
      case Present(path, leaf) =>
        chunksOf(footer, path) match {
          case Some(chunks) => ofChunks(chunks, numRecords, leaf, origin, column)
          case None => FooterAnswer.Scan(ParquetRules.scanDependsOnSettings(leaf, origin))
        }
    }

  private def ofChunks(
      chunks: Seq[ColumnChunkMetaData],
      numRecords: Long,
      leaf: PrimitiveType,
      origin: ParquetOrigin,
      column: FooterColumn): FooterAnswer = {
    def scan: FooterAnswer = FooterAnswer.Scan(ParquetRules.scanDependsOnSettings(leaf, origin))
    val nulls = chunks.map(nullCount)
    if (chunks.map(_.getValueCount).sum != numRecords) {
      FooterAnswer.Unknown // the schema implies one value per row, but the counts differ
    } else if (nulls.contains(None)) {
      if (column.isChar) FooterAnswer.Unknown else scan
    } else {
      val nullCount = nulls.flatten.sum
      val valued = chunks.zip(nulls).collect {
        case (chunk, Some(count)) if count < chunk.getValueCount => chunk
      }
      if (valued.isEmpty) FooterAnswer.allNull(numRecords)
      else if (!ParquetRules.hasBounds(column)) FooterAnswer.nullsOnly(nullCount)
      else if (!valued.forall(_.getStatistics.hasNonNullValue)) scan
      else ParquetRules.bounds(valued.map(_.getStatistics), leaf, origin, column, nullCount)
    }
  }

  /**
   * The number of nulls in a column chunk. None if it is unknown or exceeds the number of values.
   */
  private def nullCount(chunk: ColumnChunkMetaData): Option[Long] = {
    val statistics: Statistics[_] = chunk.getStatistics
    val required = chunk.getPrimitiveType.isRepetition(Type.Repetition.REQUIRED)
    if (statistics != null && statistics.isNumNullsSet) {
      Some(statistics.getNumNulls).filter(count => count >= 0 && count <= chunk.getValueCount)
    } else if (required && chunk.getPath.size == 1) {
      Some(0L)
    } else {
      None
    }
  }

  /** The column's chunk in every row group, or None if a chunk is missing or encrypted. */
  private def chunksOf(
      footer: ParquetMetadata,
      path: List[String]): Option[Seq[ColumnChunkMetaData]] = {
    val name = path.toArray
    val chunks = footer.getBlocks.asScala.toSeq.map { block =>
      block.getColumns.asScala.find(chunk =>
        !chunk.isEncrypted && chunk.getPath.toArray.sameElements(name))
    }
    if (chunks.contains(None)) None else Some(chunks.flatten)
  }

  private sealed trait Found
  private case object Absent extends Found
  private case object Unclear extends Found
  private final case class Present(path: List[String], leaf: PrimitiveType) extends Found

  /**
   * Finds the leaf from which Spark reads a column. At each level of the path, at most one field
   * may have the requested name. If several fields have that name, a read fails or picks one of
   * them. Lists, maps and repeated fields do not have one value per row.
   */
  private def find(group: GroupType, path: List[String], question: FooterQuestion): Found = {
    val fields = group.getFields.asScala.filter(f => question.sameName(f.getName, path.head))
    if (fields.isEmpty) {
      Absent
    } else if (fields.length > 1 || fields.head.isRepetition(Type.Repetition.REPEATED)) {
      Unclear
    } else if (fields.head.isPrimitive) {
      if (path.tail.isEmpty) Present(fields.head.getName :: Nil, fields.head.asPrimitiveType)
      else Unclear
    } else if (path.tail.isEmpty || fields.head.getLogicalTypeAnnotation != null) {
      Unclear
    } else {
      find(fields.head.asGroupType, path.tail, question) match {
        case Present(rest, leaf) => Present(fields.head.getName :: rest, leaf)
        case other => other
      }
    }
  }
}
