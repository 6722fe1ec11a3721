package io.pyzorder.index.collect

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, ObjectInputStream, ObjectOutputStream}

import org.apache.spark.unsafe.types.UTF8String

import io.pyzorder.index.model.ColumnStatistics

/**
 * Encodes the footers that a task has read as the task's result. Spark would serialize about 20
 * objects per file with reflection, which takes a considerable part of the time of a command that
 * reads many small footers.
 */
private[collect] object FileFooters {

  /** @param footers footers, each with the position of its file */
  def encode(footers: Seq[(Int, FileFooter)]): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    val out = new ObjectOutputStream(bytes)
    out.writeInt(footers.length)
    footers.foreach { case (position, FileFooter(numRecords, answers)) =>
      out.writeInt(position)
      out.writeLong(numRecords)
      out.writeInt(answers.length)
      answers.foreach(write(out, _))
    }
    out.close()
    bytes.toByteArray
  }

  /** The inverse of `encode`. */
  def decode(bytes: Array[Byte]): Seq[(Int, FileFooter)] = {
    val in = new ObjectInputStream(new ByteArrayInputStream(bytes))
    Seq.fill(in.readInt()) {
      val position = in.readInt()
      val numRecords = in.readLong()
      position -> FileFooter(numRecords, Array.fill(in.readInt())(read(in)))
    }
  }

  private def write(out: ObjectOutputStream, answer: FooterAnswer): Unit = answer match {
    case FooterAnswer.Scan(settingsDependent) =>
      out.writeBoolean(false)
      out.writeBoolean(settingsDependent)
    case FooterAnswer.Known(known) =>
      out.writeBoolean(true)
      Seq(known.exact, known.nanSeen, known.empty, known.settingsDependent)
        .foreach(out.writeBoolean)
      out.writeLong(known.nullCount.getOrElse(-1L))
      out.writeBoolean(known.bounds.isDefined)
      known.bounds.foreach { case (least, greatest) =>
        writeValue(out, least)
        writeValue(out, greatest)
      }
  }

  private def read(in: ObjectInputStream): FooterAnswer =
    if (!in.readBoolean()) FooterAnswer.Scan(in.readBoolean())
    else {
      val Seq(exact, nanSeen, empty, settingsDependent) = Seq.fill(4)(in.readBoolean())
      val nullCount = Some(in.readLong()).filter(_ >= 0)
      val bounds = if (in.readBoolean()) Some((readValue(in), readValue(in))) else None
      FooterAnswer.Known(
        ColumnStatistics(bounds, exact, nullCount, nanSeen, empty, settingsDependent))
    }

  private def writeValue(out: ObjectOutputStream, value: Any): Unit = value match {
    case number: Long =>
      out.writeByte('L')
      out.writeLong(number)
    case number: Int =>
      out.writeByte('I')
      out.writeInt(number)
    case text: UTF8String =>
      val bytes = text.getBytes
      out.writeByte('S')
      out.writeInt(bytes.length)
      out.write(bytes)
    case other =>
      out.writeByte('O')
      out.writeObject(other)
  }

  private def readValue(in: ObjectInputStream): Any = in.readByte() match {
    case 'L' => in.readLong()
    case 'I' => in.readInt()
    case 'S' =>
      val bytes = new Array[Byte](in.readInt())
      in.readFully(bytes)
      UTF8String.fromBytes(bytes)
    case _ => in.readObject()
  }
}
