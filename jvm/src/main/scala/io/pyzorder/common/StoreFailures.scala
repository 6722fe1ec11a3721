package io.pyzorder.common

import java.io.IOException
import java.nio.file.{AccessDeniedException, ReadOnlyFileSystemException}

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.AccessControlException

/**
 * Classifies failures of the store, which Java, Hadoop and Spark report as many different
 * exceptions.
 */
object StoreFailures {

  /**
   * Runs a command that writes to the table's folder. Throws ZORDER_NO_SPACE or ZORDER_NOT_WRITABLE
   * if the store rejects a write, ZORDER_CONFLICT if the folder or a file in it disappears while
   * the command runs, and ZORDER_STORE_FAILED for every other IOException. Some Spark versions,
   * such as 3.5, wrap an exception that a task throws. If that exception is one of pyzorder's
   * errors, it is thrown without the wrapper.
   */
  def translate[T](root: Path)(command: => T): T =
    try command
    catch {
      case NonFatal(Known(error)) => throw error
      case NonFatal(failure) if isFull(failure) =>
        val error = ZOrderErrors.noSpace(root.toString, said(failure, saysFull))
        throw ZOrderErrors.because(failure, error)
      case NonFatal(failure) if isDenied(failure) =>
        val error = ZOrderErrors.notWritable(root.toString, said(failure, saysDenied))
        throw ZOrderErrors.because(failure, error)
      case NonFatal(failure) if ZOrderErrors.isMissing(failure, root) =>
        val error = ZOrderErrors.conflict(s"$root, or a file in it, was replaced or deleted")
        throw ZOrderErrors.because(failure, error)
      case failure: IOException =>
        val error = ZOrderErrors.storeFailed(root.toString, said(failure, _ => true))
        throw ZOrderErrors.because(failure, error)
    }

  /** One of pyzorder's errors, or an exception that is caused by one. */
  private object Known {
    def unapply(failure: Throwable): Option[ZOrderException] =
      causes(failure).collectFirst { case error: ZOrderException => error }
  }

  /** Whether the store is full or a quota is exhausted. */
  def isFull(failure: Throwable): Boolean = causes(failure).exists(saysFull)

  /** Whether permission was denied. */
  def isDenied(failure: Throwable): Boolean = causes(failure).exists(saysDenied)

  /** The store's own message about a denied permission. */
  def denied(failure: Throwable): String = said(failure, saysDenied)

  private def saysFull(cause: Throwable): Boolean = Full.findFirstIn(lineOf(cause)).isDefined

  private def saysDenied(cause: Throwable): Boolean = cause match {
    case _: AccessDeniedException | _: ReadOnlyFileSystemException |
        _: AccessControlException => true
    case _ => Denied.findFirstIn(lineOf(cause)).isDefined
  }

  private val Full =
    "No space left on device|Disk quota exceeded|quota of .* is exceeded|only be written to 0 of".r

  private val Denied =
    "Permission denied|Operation not permitted|Read-only file system|Access ?Denied".r

  /**
   * The first line of the innermost matching cause's message. In Spark's messages, a stack trace
   * may follow that line.
   */
  private def said(failure: Throwable, says: Throwable => Boolean): String =
    causes(failure).filter(says).lastOption.map {
      case denied: AccessDeniedException if denied.getReason == null =>
        s"permission denied for ${denied.getFile}"
      case cause => lineOf(cause)
    }.getOrElse("").stripSuffix(".")

  private def lineOf(cause: Throwable): String =
    String.valueOf(cause.getMessage).takeWhile(_ != '\n')

  private def causes(failure: Throwable): Seq[Throwable] =
    Iterator.iterate(failure)(_.getCause).takeWhile(_ != null).take(20).toSeq
}
