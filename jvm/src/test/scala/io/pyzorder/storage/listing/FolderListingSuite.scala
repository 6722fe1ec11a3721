package io.pyzorder.storage.listing

import java.nio.file.{Files, Path => LocalPath}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.scalatest.funsuite.AnyFunSuite

import io.pyzorder.storage.FileVersion

class FolderListingSuite extends AnyFunSuite {

  private val fs = FileSystem.getLocal(new Configuration())

  /** Names of files, and whether Spark shows them. */
  private val files = Seq(
    ("b.parquet", true),
    ("a.parquet", true),
    ("a b%20c#d.parquet", true),
    ("ä.parquet", true),
    ("=x:y.parquet", true),
    ("_k=v.parquet", true),
    ("_metadata", true),
    ("_common_metadata.bak", true),
    ("_SUCCESS", false),
    (".a.parquet.crc", false),
    ("a.parquet._COPYING_", false))

  private def folderWith(names: Seq[String]): LocalPath = {
    val folder = Files.createTempDirectory("listing")
    names.zipWithIndex.foreach { case (name, i) =>
      Files.writeString(folder.resolve(name), "x" * i)
    }
    folder
  }

  private def listed(folder: LocalPath): Option[Seq[FileStatus]] =
    FolderListing(fs, fs.makeQualified(new Path(folder.toUri)), Nil)

  test("the files of a folder") {
    val folder = folderWith(files.map(_._1))
    Files.createDirectory(folder.resolve("_zorder"))
    val shown = files.filter(_._2).map(_._1).toSet
    val expected = fs.listStatus(new Path(folder.toUri)).filter(file => shown(file.getPath.getName))
    val found = listed(folder).get
    assert(found.map(FileVersion.of).toSet == expected.map(FileVersion.of).toSet)
    assert(found.length == shown.size)
    assert(found.map(_.getPath.getName) == found.map(_.getPath.getName).sorted)
    assert(found.map(_.getBlockSize).toSet == expected.map(_.getBlockSize).toSet)
  }

  test("an empty folder") {
    assert(listed(folderWith(Nil)).contains(Nil))
  }

  /** Folders that Hadoop must list, because Spark shows more than the files in them. */
  private val others = Seq[(String, LocalPath => Unit)](
    ("a folder", folder => Files.createDirectory(folder.resolve("k=1"))),
    ("a link to a file",
      folder => Files.createSymbolicLink(folder.resolve("l"), folder.resolve("a"))),
    ("a link to a folder", folder => Files.createSymbolicLink(folder.resolve("l"), folder)),
    ("a link to nothing",
      folder => Files.createSymbolicLink(folder.resolve("l"), folder.resolve("n"))))

  for ((what, create) <- others)
    test(s"a folder with $what") {
      val folder = folderWith(Seq("a"))
      assert(listed(folder).isDefined)
      create(folder)
      assert(listed(folder).isEmpty)
    }

  test("a folder that is not there, and a file") {
    val folder = folderWith(Seq("a"))
    assert(listed(folder.resolve("a")).isEmpty)
    assert(listed(folder.resolve("b")).isEmpty)
  }
}
