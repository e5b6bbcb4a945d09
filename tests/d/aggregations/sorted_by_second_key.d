/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 34: aggsortkeypos chooses the key. */
/* flags: -q -xaggsortkey -xaggsortkeypos=1 */
BEGIN
{
	@["a", 3] = sum(1);
	@["b", 1] = sum(2);
	@["c", 2] = sum(3);
	exit(0);
}
/* output:

  b                                                         1                2
  c                                                         2                3
  a                                                         3                1
*/
