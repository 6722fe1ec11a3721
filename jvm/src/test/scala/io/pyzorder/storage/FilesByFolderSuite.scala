package io.pyzorder.storage

import scala.util.Random

import org.apache.hadoop.fs.{FileStatus, Path}
import org.scalatest.funsuite.AnyFunSuite

class FilesByFolderSuite extends AnyFunSuite {

  private val folders = Seq(
    "file:/", "file:/t", "file:/t/p=1", "file:/t/p=1/q=2", "file:/tx", "s3a://b/t", "s3a://c/t",
    "hdfs://b/t")

  test("files in any order are in the folders that their paths name") {
    val random = new Random(11)
    for (_ <- 1 to 50) {
      val files = Seq.fill(random.nextInt(60)) {
        val path =
          new Path(new Path(folders(random.nextInt(folders.length))), s"f${random.nextInt(9)}")
        new FileStatus(1, false, 1, 0, 0, path)
      }
      assert(FilesByFolder(files) == files.groupBy(_.getPath.getParent))
    }
  }
}
