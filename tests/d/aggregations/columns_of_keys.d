/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 35: each size has its width; keys of one and two bytes are printed unsigned. */
BEGIN
{
	@a[(char)-2] = count();
	@b[(short)-2] = count();
	@c[-2] = count();
	@d[-2ll] = count();
	@e["string"] = count();
	exit(0);
}
/* output:

 254                1
 65534                1
       -2                1
               -2                1
  string                                                            1
*/
