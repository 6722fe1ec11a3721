package io.pyzorder.storage

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

class TableFolderSuite extends AnyFunSuite {

  private def names(length: Int): Seq[String] =
    if (length == 0) Seq("")
    else for (name <- names(length - 1); next <- Seq("a", "=", ".", "/", ":", "\u0000", "é"))
      yield name + next

  test("all short relative names that leave the folder are detected") {
    for (length <- 0 to 5; name <- names(length) if !TableFolder.isWhole(name)) {
      val isBad = name.contains('\u0000') || name.split("/", -1).exists(Set("", ".", ".."))
      assert(TableFolder.leaves(name) == isBad, name)
    }
  }

  test("a name is resolved as Hadoop resolves it, whatever characters it has") {
    val parts = Seq("a", "%20", " ", "#", "?", "é", "p=1/", "+", "\\", "b:", "[", "\t")
    for (root <- Seq("file:/t", "file:/t u/v", "s3a://bucket/t", "file:/");
      one <- parts; two <- parts; three <- Seq("", "x")) {
      val (folder, name) = (new Path(root), one + two + three)
      if (!TableFolder.leaves(name) && !TableFolder.isWhole(name)) {
        val uri = folder.toUri
        val path = uri.getPath.stripSuffix("/") + "/" + name
        assert(
          new TableFolder(folder).resolve(name) ==
            new Path(uri.getScheme, uri.getAuthority, path), name)
      }
    }
  }

  for (whole <- Seq("file:/t/part-0.parquet", "s3a://bucket/t/p=1/part-0.parquet"))
    test(s"$whole is accepted, and other spellings of it are not") {
      assert(!TableFolder.leaves(whole))
      val others = Seq(
        whole.replace("/t/", "/t/../u/"), whole.replace("/t/", "/t//"), whole + "/",
        whole + "\u0000")
      assert(others.forall(TableFolder.leaves))
    }

  for ((name, hidden) <- Seq(
      "part-0.parquet" -> false, "p=1/part-0.parquet" -> false, "_p=1/part-0.parquet" -> false,
      "_p/part-0.parquet" -> true, "p=1/.part-0.parquet" -> true, "_metadata" -> true,
      "part-0.parquet._COPYING_" -> true, "s3a://bucket/_t/p=1/part-0.parquet" -> false,
      "s3a://bucket/t/p=1/_part-0.parquet" -> true)) test(s"$name is hidden: $hidden") {
    assert(TableFolder.isHidden(name) == hidden)
  }

  test("the case of a scheme makes no difference") {
    val (file, folder) = (new Path("file:/t/p=1/part-0.parquet"), new Path("FILE:/t"))
    assert(new TableFolder(folder).root.toString == "file:/t")
    assert(new TableFolder(folder).relativize(file) == "p=1/part-0.parquet")
    assert(new TableFolder(new Path("file:/t")).relativize(new Path("FILE:/t/x")) == "x")
    assert(TableFolder.isAtOrBelow(file, folder) && TableFolder.isAtOrBelow(folder, folder))
    assert(!TableFolder.isAtOrBelow(new Path("file:/tx"), folder))
  }
}
