package io.pyzorder.publish.reading

import java.io.FileNotFoundException

import scala.annotation.tailrec

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.pyzorder.publish.journal.{Journal, Overlay}
import io.pyzorder.storage.TableFolder
import io.pyzorder.storage.metadata.ListedMetadata

/**
 * What a table's journal says about a listing. A listing is correct if the journal says the same
 * thing before and after it (see Overlay).
 *
 * @param token   a string that changes whenever the journal changes
 * @param lost    the listed folders that no longer contain the unfinished run's marker
 * @param overlay the correction that the unfinished run requires; None if no run is unfinished
 */
private[reading] final case class JournalLook(token: String, lost: Set[String])(
    val overlay: Option[Overlay])

private[reading] object JournalLook {

  private val MaxTries = 50

  /**
   * @param roots the paths to list
   * @param lists whether the journal itself must be listed (see ListedMetadata.newest)
   */
  def apply(
      hadoopConf: Configuration,
      folder: TableFolder,
      roots: Seq[Path],
      lists: Boolean): JournalLook = {
    val state = Journal.read(
      hadoopConf,
      if (lists) ListedMetadata.of(hadoopConf, folder)
      else ListedMetadata.newest(hadoopConf, folder))
    val lost = state.overlay.map(over =>
      over.lost(hadoopConf,
        over.folders.filter { name =>
          val path = folder.resolve(name)
          roots.exists(root =>
            TableFolder.isAtOrBelow(path, root) || TableFolder.isAtOrBelow(root, path))
        }))
    JournalLook(state.token, lost.getOrElse(Set.empty))(state.overlay)
  }

  /**
   * Calls `look`, then `list`, then `look` again. Starts over if a journal has changed or a folder
   * has disappeared. After `MaxTries` attempts, returns the last listing anyway.
   *
   * @throws FileNotFoundException if a folder disappeared during the last attempt
   */
  def unchangedDuring[A](look: () => Seq[JournalLook])(list: Seq[JournalLook] => A): A = {
    @tailrec
    def attempt(left: Int): A = {
      val before = look()
      val listed =
        try Right(list(before))
        catch { case gone: FileNotFoundException => Left(gone) }
      if (left > 1 && (listed.isLeft || look() != before)) attempt(left - 1)
      else listed.fold(throw _, identity)
    }
    attempt(MaxTries)
  }
}
