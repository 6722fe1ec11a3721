package org.apache.spark.sql.pyzorder

import scala.util.control.NonFatal

import org.apache.spark.sql.internal.SQLConf

/**
 * A pyzorder setting, which `SET -v` documents and `SET` validates.
 *
 * The class is in Spark's package because Spark's registry of settings is private to that package.
 *
 * @param key     full key, `spark.sql.zorder.<noun>.<noun>`
 * @param default the default value as a string
 * @param doc     description for `SET -v`
 * @param parse   parses a string; if the string is invalid, throws an IllegalArgumentException that
 *                explains why
 * @param public  whether `SET -v` shows the setting; false for test settings
 */
class Setting[T](
    val key: String,
    val default: String,
    val doc: String,
    parse: String => T,
    val public: Boolean = true) {

  register()

  /** The setting's value in the session. */
  def get(conf: SQLConf): T = checked(conf.getConfString(key, default), key)

  /** The default value, parsed. */
  def defaultValue: T = parse(default)

  protected def checked(text: String, where: String): T =
    try parse(text)
    catch {
      case NonFatal(failure) =>
        throw io.pyzorder.common.ZOrderErrors.invalidSetting(where, text, failure.getMessage)
    }

  /**
   * Registers the setting, unless another class loader's copy of this class has already registered
   * it.
   */
  private def register(): Unit =
    if (!SQLConf.containsConfigKey(key)) {
      val builder = SQLConf.buildConf(key).doc(doc).version("0.1.0")
      (if (public) builder else builder.internal()).stringConf
        .transform { text => checked(text, key); text }
        .createWithDefault(default)
    }
}

/**
 * A setting that can also be a table property. The property's name is the setting's key without the
 * prefix `spark.sql.`.
 */
final class TableSetting[T](key: String, default: String, doc: String, parse: String => T)
    extends Setting[T](key, default, doc, parse) {

  /** The name of the table property. */
  def property: String = key.stripPrefix("spark.sql.")

  /**
   * The value for a table: the session's value if it is set explicitly, or else the table's value,
   * or else the default.
   */
  def get(conf: SQLConf, properties: Map[String, String]): T =
    chosen(conf, properties).getOrElse(get(conf))

  /**
   * The value that the session or, failing that, the table sets explicitly; None if neither does.
   */
  def chosen(conf: SQLConf, properties: Map[String, String]): Option[T] =
    if (conf.contains(key)) Some(get(conf)) else ofTable(properties)

  /**
   * The value of the table's property, even if the session has another value; None if the property
   * is not set.
   */
  def ofTable(properties: Map[String, String]): Option[T] =
    properties.find(_._1.equalsIgnoreCase(property)).map { case (_, text) =>
      checked(text, property)
    }
}
