/** The polyfill that @peculiar/x509 requires. In its own module, because the bundler runs ES modules before CommonJS ones of the same importer. */
import "reflect-metadata";
