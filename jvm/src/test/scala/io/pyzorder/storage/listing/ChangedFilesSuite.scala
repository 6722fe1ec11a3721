package io.pyzorder.storage.listing

import java.nio.file.{Files, Path => LocalPath}
import java.nio.file.attribute.FileTime

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.scalatest.funsuite.AnyFunSuite

class ChangedFilesSuite extends AnyFunSuite {

  private val conf = new Configuration()

  /** Each change to the file at the path, and whether it counts as a change. */
  private val changes = Seq[(String, Boolean, LocalPath => Unit)](
    ("nothing", false, _ => ()),
    ("read", false, path => Files.readAllBytes(path)),
    ("deleted", true, path => Files.delete(path)),
    ("longer", true, path => { val t = time(path); Files.writeString(path, "abcd"); set(path, t) }),
    ("a millisecond older", true, path => set(path, time(path) - 1)),
    ("replaced by a folder", true,
      path => {
        val t = time(path); Files.delete(path); Files.createDirectory(path); set(path, t)
      }),
    ("replaced by a link to itself", false,
      path => {
        val moved = path.resolveSibling("_moved")
        Files.move(path, moved)
        Files.createSymbolicLink(path, moved)
      }))

  private val names = Seq("a.parquet", "a b%20c#d.parquet", "ä.parquet", "=x:y.parquet")

  for ((what, isChange, change) <- changes; name <- names)
    test(s"a file named $name: $what") {
      val folder = Files.createTempDirectory("changed")
      val (path, other) = (folder.resolve(name), folder.resolve("other"))
      Files.writeString(path, "abc")
      Files.writeString(other, "abc")
      val fs = FileSystem.getLocal(conf)
      val listed = fs.listStatus(new Path(folder.toUri)).toSeq
      change(path)
      val changed = listed.filter(_.getPath.getName == name).map(_.getPath).toSet
      val expected = if (isChange) changed else Set.empty[Path]
      assert(listed.length == 2 && changed.size == 1)
      assert(ChangedFiles.among(conf, listed.iterator) == expected)
      assert(ChangedFiles.anyOf(conf, listed) == isChange)
    }

  test("files in several folders") {
    val folder = Files.createTempDirectory("changed")
    val files = for (place <- 1 to 3; number <- 1 to 5) yield {
      val path = folder.resolve(s"p=$place").resolve(s"f$number")
      Files.createDirectories(path.getParent)
      Files.writeString(path, "x" * number)
      FileSystem.getLocal(conf).getFileStatus(new Path(path.toUri))
    }
    def gone(file: FileStatus): Boolean = file.getPath.toString.matches(".*(p=1/f2|p=3/f4)")
    files.filter(gone).foreach(file => Files.delete(LocalPath.of(file.getPath.toUri)))
    assert(ChangedFiles.among(conf, files.iterator) == files.filter(gone).map(_.getPath).toSet)
  }

  private def time(path: LocalPath): Long = Files.getLastModifiedTime(path).toMillis

  private def set(path: LocalPath, millis: Long): Unit =
    Files.setLastModifiedTime(path, FileTime.fromMillis(millis))
}
