/* SPDX-License-Identifier: Apache-2.0 */
/* Static probes of Debian's Python, named with the process. */
/* flags: -q -Z -c "/usr/bin/python3 -c 'import colorsys'" */
python$target:::import-find-load-start
/copyinstr(arg0) == "colorsys"/
{
	printf("%s %d\n", copyinstr(arg0), probeprov == strjoin("python", lltostr($target)));
}
/* output:
colorsys 1

*/
