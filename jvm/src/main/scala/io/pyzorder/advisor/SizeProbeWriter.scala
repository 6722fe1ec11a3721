package io.pyzorder.advisor

import java.io.File

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeProjection}
import org.apache.spark.sql.execution.datasources.OutputWriter
import org.apache.spark.sql.pyzorder.LocalFolder

import io.pyzorder.layout.write.FileWriters

/**
 * The measured size of one file of a layout.
 *
 * @param layout the number of the layout
 * @param key    the shuffle key that the file's rows share
 */
final case class ProbedFile(layout: Int, key: Int, rows: Long, bytes: Long)

/**
 * Writes files to temporary local folders to measure their size.
 *
 * @param data the columns to write. In each input row, these columns are followed by the number of
 *             the layout and the row's shuffle key
 */
private[pyzorder] final class SizeProbeWriter(writers: FileWriters, data: Seq[Expression])
    extends Serializable {

  /**
   * Writes the rows to files and returns the files' sizes. The rows of each file must be adjacent.
   */
  def weigh(rows: Iterator[InternalRow]): Iterator[ProbedFile] =
    if (!rows.hasNext) Iterator.empty else LocalFolder.use(weighed(rows, _).iterator)

  private def weighed(rows: Iterator[InternalRow], folder: File): Seq[ProbedFile] = {
    val project = UnsafeProjection.create(data)
    val file = new File(folder, "trial" + writers.extension)
    var done = Vector.empty[ProbedFile]
    var writer: OutputWriter = null
    var layout, key = -1
    var count = 0L
    def close(): Unit = if (writer != null) {
      writer.close()
      writer = null
      done :+= ProbedFile(layout, key, count, file.length)
      file.delete()
    }
    try {
      while (rows.hasNext) {
        val row = rows.next()
        if (writer == null || row.getInt(data.length) != layout ||
          row.getInt(data.length + 1) != key) {
          close()
          layout = row.getInt(data.length)
          key = row.getInt(data.length + 1)
          count = 0L
          writer = writers.open(new Path(file.toURI), 0)
        }
        writer.write(project(row))
        count += 1
      }
    } finally close()
    done
  }
}
