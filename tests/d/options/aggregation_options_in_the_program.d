/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 34: sort options by pragma. */
#pragma D option aggsortkey
#pragma D option aggsortrev
BEGIN
{
	@["a"] = sum(2);
	@["b"] = sum(1);
	exit(0);
}
/* output:

  b                                                                 1
  a                                                                 2
*/
