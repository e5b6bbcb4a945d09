/* SPDX-License-Identifier: Apache-2.0 */
/* Keys may be strings, compared by contents. */
BEGIN
{
	a["one"] = 1;
	a["two"] = 2;
	printf("%d %d %d\n", a["one"], a[strjoin("t", "wo")], a["three"]);
	exit(0);
}
/* output:
1 2 0

*/
