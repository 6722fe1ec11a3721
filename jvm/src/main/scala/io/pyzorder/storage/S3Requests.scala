package io.pyzorder.storage

import java.io.{FileNotFoundException, IOException}
import java.lang.reflect.InvocationTargetException
import java.time.Instant
import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.spark.unsafe.types.UTF8String

/**
 * Requests to S3 that S3A's own methods do not send: those that list a range of the names in a
 * folder, and those that look up one file without listing anything if there is no such file.
 *
 * S3 returns at most 1,000 files per page, and the token for a page is known only after the
 * previous page has been returned. A folder can therefore be listed in parallel only if some of the
 * names in it are already known. S3A cannot list a range of names, so this class calls S3A's own
 * client. The calls run within an S3A audit span, and their requests have the headers that S3A
 * sets.
 *
 * The classes of S3A and of its client are found through reflection, because neither Spark nor
 * pyzorder contains them.
 */
final class S3Requests private (val fs: FileSystem) {
  import S3Requests._

  private val loader = fs.getClass.getClassLoader

  private def call(
      target: AnyRef,
      of: String,
      name: String,
      arguments: (Class[_], AnyRef)*): AnyRef =
    try loader.loadClass(of).getMethod(name, arguments.map(_._1): _*)
        .invoke(target, arguments.map(_._2): _*)
    catch { case failure: InvocationTargetException => throw failure.getCause }

  private def ofS3A(name: String, arguments: (Class[_], AnyRef)*): AnyRef =
    call(fs, s"$S3A.S3AFileSystem", name, arguments: _*)

  private val internals = ofS3A("getS3AInternals")

  private def ofInternals(name: String, argument: (Class[_], AnyRef)): AnyRef =
    call(internals, s"$S3A.S3AInternals", name, argument)

  private val client =
    ofInternals("getAmazonS3Client", classOf[String] -> "pyzorder lists a range of names")

  /**
   * The entity tag of a file; None if there is no such file. S3 assigns another tag if the file is
   * replaced by a file with other bytes. Throws if the request fails.
   */
  def tagOf(file: Path): Option[String] =
    try Some(
        call(
          ofInternals("getObjectMetadata", classOf[Path] -> file), s"$Model.HeadObjectResponse",
          "eTag").asInstanceOf[String])
    catch { case _: FileNotFoundException => None }

  /**
   * The folder's files whose names sort after `after`, up to and including `last`. If `after` is
   * empty, the range starts at the first file in the folder; if `last` is empty, it ends at the
   * last one. The result may also contain some files beyond `last`, because the last page is
   * returned as a whole. Throws if the version of S3A or of its client is not supported, if a
   * request fails, or if the store does not return names in order, as directory buckets of S3 do
   * not.
   */
  def range(folder: Path, after: String, last: String): Seq[FileStatus] =
    entries(folder, after, last).files

  /** Like `range`, but includes the names of subfolders. */
  def entries(folder: Path, after: String, last: String): Entries =
    listed(folder, after, last, Some("/"), PageSize)

  /**
   * Like `range`, but includes the files at any depth below the folder.
   *
   * @param pageSize the number of files per request, at most PageSize
   */
  def rangeBelow(folder: Path, after: String, last: String, pageSize: Int): Seq[FileStatus] =
    listed(folder, after, last, None, pageSize).files

  private def listed(
      folder: Path,
      after: String,
      last: String,
      delimiter: Option[String],
      pageSize: Int): Entries = {
    val span = ofS3A(
      "createSpan", classOf[String] -> "op_list_status", classOf[String] -> folder.toString,
      classOf[String] -> null)
    call(span, AuditSpan, "activate")
    try {
      val all = pages(folder, after, last, delimiter, pageSize).toList
      Entries(all.flatMap(_.files), all.flatMap(_.folders).distinct)
    } finally call(span, AuditSpan, "deactivate")
  }

  private def pages(
      folder: Path,
      after: String,
      last: String,
      delimiter: Option[String],
      pageSize: Int): Iterator[Entries] = {
    val own = ofS3A("pathToKey", classOf[Path] -> folder).asInstanceOf[String]
    val prefix = if (own.isEmpty) "" else own + "/" // the root of a bucket has no key
    def page(token: AnyRef): AnyRef = {
      val request = call(
        ofS3A("getRequestFactory"), s"$S3A.api.RequestFactory", "newListObjectsV2RequestBuilder",
        classOf[String] -> prefix, classOf[String] -> delimiter.orNull,
        classOf[Int] -> Int.box(pageSize))
      def set(name: String, value: AnyRef): Unit =
        call(request, s"$Model.ListObjectsV2Request$$Builder", name, classOf[String] -> value)
      if (token != null) set("continuationToken", token)
      else if (after.nonEmpty) set("startAfter", prefix + after)
      call(client, s"$Sdk.S3Client", "listObjectsV2",
        loader.loadClass(s"$Model.ListObjectsV2Request") ->
          call(request, s"$Builders.SdkBuilder", "build"))
    }
    def get(response: AnyRef, name: String): AnyRef =
      call(response, s"$Model.ListObjectsV2Response", name)
    def objects(response: AnyRef): Seq[AnyRef] =
      get(response, "contents").asInstanceOf[JList[AnyRef]].asScala.toList
    def keyOf(found: AnyRef): String =
      call(found, s"$Model.S3Object", "key").asInstanceOf[String]
    // S3 sorts keys by their bytes.
    var greatest = UTF8String.fromString(prefix + after)
    def checkOrder(response: AnyRef): Unit = objects(response).foreach { found =>
      val key = UTF8String.fromString(keyOf(found))
      if (key.compareTo(greatest) < 0) throw new IOException(s"$folder is not listed in order")
      greatest = key
    }
    // An object whose key ends in "/" stands for a folder.
    def files(response: AnyRef): Seq[FileStatus] =
      objects(response).flatMap { found =>
        def property(name: String): AnyRef = call(found, s"$Model.S3Object", name)
        val key = keyOf(found)
        if (key.endsWith("/")) None
        else Some(new S3Status(
            property("size").asInstanceOf[Long],
            property("lastModified").asInstanceOf[Instant].toEpochMilli,
            new Path(folder, key.stripPrefix(prefix)), property("eTag").asInstanceOf[String]))
      }
    def folders(response: AnyRef): Seq[String] =
      get(response, "commonPrefixes").asInstanceOf[JList[AnyRef]].asScala.toList.map { found =>
        val key = call(found, s"$Model.CommonPrefix", "prefix").asInstanceOf[String]
        key.stripPrefix(prefix).stripSuffix("/")
      }
    // A page ends the range if it is the folder's last page or reaches `last`.
    def isLast(response: AnyRef): Boolean =
      get(response, "isTruncated") != java.lang.Boolean.TRUE ||
        last.nonEmpty && objects(response).lastOption.exists(found =>
          keyOf(found).stripPrefix(prefix).compareTo(last) >= 0)
    val responses = Iterator.iterate(Option(page(null)))(
      _.filterNot(isLast).map(response => page(get(response, "nextContinuationToken"))))
    responses.takeWhile(_.isDefined).flatten.map { response =>
      checkOrder(response)
      Entries(files(response), folders(response))
    }
  }
}

/** The status of a file on S3, with the file's entity tag. */
final class S3Status(length: Long, modificationTime: Long, path: Path, val tag: String)
    extends FileStatus(length, false, 1, 0L, modificationTime, path)

object S3Requests {

  /** Files, and the names of subfolders. */
  final case class Entries(files: Seq[FileStatus], folders: Seq[String])

  /** The maximum number of files that S3 returns per request. */
  val PageSize: Int = 1000

  /**
   * The number of known files in a range. It is less than the size of a page, to leave room on the
   * page for some new files.
   */
  private[storage] val RangeSize: Int = PageSize * 9 / 10
  private val S3A = "org.apache.hadoop.fs.s3a"
  private val Sdk = "software.amazon.awssdk.services.s3"
  private val Model = s"$Sdk.model"
  private val Builders = "software.amazon.awssdk.utils.builder"
  private val AuditSpan = "org.apache.hadoop.fs.store.audit.AuditSpan"

  /**
   * The requests for a file system; None if the file system is not S3A. Also None if S3A encrypts
   * objects before it uploads them, because the sizes of the objects in S3 then differ from the
   * sizes of the files.
   */
  def of(fs: FileSystem): Option[S3Requests] =
    if (fs.getClass.getName != s"$S3A.S3AFileSystem") None
    else {
      val listing = new S3Requests(fs)
      if (listing.ofS3A("isCSEEnabled") == java.lang.Boolean.TRUE) None else Some(listing)
    }
}
