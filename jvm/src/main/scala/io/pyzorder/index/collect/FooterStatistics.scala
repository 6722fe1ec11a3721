package io.pyzorder.index.collect

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.HadoopReadOptions
import org.apache.parquet.column.statistics.Statistics
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.{ColumnChunkMetaData, ParquetMetadata}
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.schema.{GroupType, PrimitiveType, Type}

/**
 * Reads statistics out of a Parquet footer, where they are provably those of the values Spark
 * reads.
 *
 * Which statistics parquet-mr shows us at all is already a choice it makes soundly: the old `min`
 * and `max` fields only where their order was signed and is right, none of writers known to have
 * written wrong ones (PARQUET-251), none of a column whose order it does not know. ParquetRules
 * says what a pair of shown bounds means as a value of Spark's type.
 */
private[index] object FooterStatistics {

  /** The answers of one file's footer; throws what the reader throws. */
  def read(path: Path, conf: Configuration, question: FooterQuestion): FileFooter = {
    val options = HadoopReadOptions.builder(conf, path).useSignedStringMinMax(false).build()
    val reader = ParquetFileReader.open(HadoopInputFile.fromPath(path, conf), options)
    val footer =
      try reader.getFooter
      finally reader.close()
    val numRecords = footer.getBlocks.asScala.map(_.getRowCount).sum
    val origin = ParquetOrigin.of(footer.getFileMetaData, question.datetimeRebase)
    FileFooter(numRecords, question.columns.map(answer(footer, numRecords, origin, question, _)))
  }

  private def answer(
      footer: ParquetMetadata,
      numRecords: Long,
      origin: ParquetOrigin,
      question: FooterQuestion,
      column: FooterColumn): FooterAnswer =
    find(footer.getFileMetaData.getSchema, column.path.toList, question) match {
      // A column that a file lacks reads as null. With a default only readers who know the default
      // see it, and others see null in the same file: unknown is right for both.
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
      FooterAnswer.Unknown // not one value a row: the schema is not what it seems
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

  /** Nulls of one column chunk; a count greater than the values there are is not believed. */
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

  /** The column's chunk of every row group; None: one is missing or encrypted. */
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
   * The leaf that Spark reads a column from: the one field of that name at each step. Several are
   * an error or the reader's choice; lists, maps and repeated fields have no value of their own a
   * row.
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
