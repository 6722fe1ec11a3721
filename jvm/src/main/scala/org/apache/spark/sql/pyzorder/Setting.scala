package org.apache.spark.sql.pyzorder

import scala.util.control.NonFatal

import org.apache.spark.sql.internal.SQLConf

/**
 * One setting of pyzorder: documented in `SET -v`, checked by `SET`, and readable from a table's
 * properties too, where its key lacks the `spark.sql.` prefix.
 *
 * Spark keeps its registry of settings to its own packages, therefore this class lives in one.
 *
 * @param key     full key, `spark.sql.zorder.<noun>.<noun>`
 * @param default what holds when nothing is set, as one would write it
 * @param doc     what `SET -v` says
 * @param parse   the value of a text; throws IllegalArgumentException with a sentence
 * @param public  false: for tests, not shown by `SET -v`
 */
final class Setting[T](
    val key: String,
    val default: String,
    doc: String,
    parse: String => T,
    public: Boolean = true) {

  register()

  /** The key as a table property. */
  def property: String = key.stripPrefix("spark.sql.")

  /** The session's value. */
  def get(conf: SQLConf): T = checked(conf.getConfString(key, default), key)

  /** The value for one table: what the session set explicitly, else the table's property. */
  def get(conf: SQLConf, properties: Map[String, String]): T =
    if (conf.contains(key)) {
      get(conf)
    } else {
      ofTable(properties).getOrElse(get(conf))
    }

  /** The table's property, whatever the session says; None: it has none. */
  def ofTable(properties: Map[String, String]): Option[T] =
    properties.find(_._1.equalsIgnoreCase(property)).map { case (_, text) =>
      checked(text, property)
    }

  private def checked(text: String, where: String): T =
    try parse(text)
    catch {
      case NonFatal(failure) =>
        throw io.pyzorder.ZOrderErrors.invalidSetting(where, text, failure.getMessage)
    }

  /** A second class loader of the same JVM finds the key taken, by this same page: let it be. */
  private def register(): Unit =
    if (!SQLConf.containsConfigKey(key)) {
      val builder = SQLConf.buildConf(key).doc(doc).version("0.1.0")
      (if (public) builder else builder.internal()).stringConf
        .transform { text => checked(text, key); text }
        .createWithDefault(default)
    }
}
